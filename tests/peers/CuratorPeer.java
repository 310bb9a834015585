import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

/** A program that locks by Apache Curator, at its standard input's word. See curator-peer. */
public class CuratorPeer {
    /** What the recipes have in common. */
    interface Recipe {
        /** False when it was not there within the time; -1: waits for ever. */
        boolean acquire(long milliseconds) throws Exception;

        void release() throws Exception;
    }

    static Recipe of(InterProcessLock lock) {
        return new Recipe() {
            public boolean acquire(long milliseconds) throws Exception {
                if (milliseconds >= 0) return lock.acquire(milliseconds, TimeUnit.MILLISECONDS);
                lock.acquire();
                return true;
            }

            public void release() throws Exception {
                lock.release();
            }
        };
    }

    static Recipe of(InterProcessSemaphoreV2 semaphore) {
        return new Recipe() {
            private Lease lease;

            public boolean acquire(long milliseconds) throws Exception {
                lease = milliseconds < 0 ? semaphore.acquire()
                        : semaphore.acquire(milliseconds, TimeUnit.MILLISECONDS);
                return lease != null;
            }

            public void release() throws Exception {
                semaphore.returnLease(lease);
            }
        };
    }

    static Recipe recipe(CuratorFramework client, String name, String path) {
        if (name.equals("mutex")) return of(new InterProcessMutex(client, path));
        if (name.equals("read")) return of(new InterProcessReadWriteLock(client, path).readLock());
        if (name.equals("write")) return of(new InterProcessReadWriteLock(client, path).writeLock());
        if (name.startsWith("semaphore:")) {
            int permits = Integer.parseInt(name.substring("semaphore:".length()));
            return of(new InterProcessSemaphoreV2(client, path, permits));
        }
        throw new IllegalArgumentException("no such recipe: " + name);
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                arguments[0], 30000, 15000, new RetryOneTime(1000));
        client.start();
        client.blockUntilConnected();
        Recipe recipe = recipe(client, arguments[1], arguments[2]);
        say("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("exit")) break;
            try {
                if (words[0].equals("acquire")) {
                    long limit = words.length > 1 ? Long.parseLong(words[1]) : -1;
                    say(recipe.acquire(limit) ? "acquired" : "busy");
                } else if (words[0].equals("release")) {
                    recipe.release();
                    say("released");
                } else {
                    say("error: no such command: " + line);
                }
            } catch (Exception error) {
                say("error: " + error);
            }
        }
        client.close();
        System.exit(0);  // some of its threads are no daemons
    }
}
