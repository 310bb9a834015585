import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** A program that locks through Apache Curator, driven by its standard input. See curator-peer. */
public class CuratorPeer {
    /** Gives up if it cannot connect in this time, so that no program outlives its test. */
    static final int CONNECT_SECONDS = 180;

    /** The operations that the recipes have in common. */
    interface Recipe {
        /** False if the lock was not acquired in time; -1 waits for ever. */
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

    static Recipe of(InterProcessSemaphoreV2 semaphore, int quantity) {
        return new Recipe() {
            private Collection<Lease> leases;

            public boolean acquire(long milliseconds) throws Exception {
                leases = milliseconds < 0 ? semaphore.acquire(quantity)
                        : semaphore.acquire(quantity, milliseconds, TimeUnit.MILLISECONDS);
                return leases != null;
            }

            public void release() throws Exception {
                semaphore.returnAll(leases);
            }
        };
    }

    /** The lock of ZooKeeper's own recipes, the Java counterpart of the one in C. */
    static Recipe ofRecipes(String servers, String path) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        // A separate session: the recipe recognises its znode by the session id.
        ZooKeeper client = new ZooKeeper(servers, 30000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) connected.countDown();
        });
        if (!connected.await(CONNECT_SECONDS, TimeUnit.SECONDS)) {
            throw new IOException("no connection to " + servers);
        }
        Semaphore acquired = new Semaphore(0);
        WriteLock lock = new WriteLock(client, path, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                new LockListener() {
                    public void lockAcquired() {
                        acquired.release();
                    }

                    public void lockReleased() {}
                });
        return new Recipe() {
            public boolean acquire(long milliseconds) throws Exception {
                acquired.drainPermits();
                lock.lock();
                if (milliseconds < 0) {
                    acquired.acquire();
                    return true;
                }
                if (acquired.tryAcquire(milliseconds, TimeUnit.MILLISECONDS)) return true;
                lock.unlock();
                return false;
            }

            public void release() {
                lock.unlock();
            }
        };
    }

    static Recipe recipe(CuratorFramework client, String servers, String name, List<String> paths)
            throws Exception {
        String path = paths.get(0);
        if (name.equals("mutex")) return of(new InterProcessMutex(client, path));
        if (name.equals("read")) return of(new InterProcessReadWriteLock(client, path).readLock());
        if (name.equals("write")) return of(new InterProcessReadWriteLock(client, path).writeLock());
        if (name.equals("semaphore-mutex")) return of(new InterProcessSemaphoreMutex(client, path));
        if (name.equals("multi")) return of(new InterProcessMultiLock(client, paths));
        if (name.equals("recipes")) return ofRecipes(servers, path);
        if (name.startsWith("semaphore:")) {
            String[] numbers = name.split(":");
            int quantity = numbers.length > 2 ? Integer.parseInt(numbers[2]) : 1;
            return of(new InterProcessSemaphoreV2(client, path, Integer.parseInt(numbers[1])), quantity);
        }
        throw new IllegalArgumentException("no such recipe: " + name);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** One lock, served by one thread, because Curator's mutexes belong to a thread. */
    static class Contender {
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private Recipe recipe;

        void obey(CuratorFramework client, String servers, String visit, String[] words) {
            thread.execute(() -> {
                try {
                    say(words[0] + " " + answer(client, servers, visit, words));
                } catch (Exception error) {
                    say(words[0] + " error: " + error);
                }
            });
        }

        private String answer(CuratorFramework client, String servers, String visit, String[] words)
                throws Exception {
            switch (words[1]) {
                case "make":
                    recipe = recipe(client, servers, words[2],
                            Arrays.asList(words).subList(3, words.length));
                    return "made";
                case "acquire":
                    long limit = words.length > 2 ? Long.parseLong(words[2]) : -1;
                    return recipe.acquire(limit) ? "acquired" : "busy";
                case "release":
                    recipe.release();
                    return "released";
                case "rounds":
                    for (int i = Integer.parseInt(words[2]); i > 0; --i) round(visit, words);
                    return "done";
                default:
                    return "error: no such command: " + String.join(" ", words);
            }
        }

        private void round(String visit, String[] words) throws Exception {
            if (!recipe.acquire(words.length > 6 ? Long.parseLong(words[6]) : -1)) return;
            List<String> command = new ArrayList<>(List.of(visit, words[3], words[0], words[4]));
            if (words.length > 5) command.add(words[5]);
            int status = new ProcessBuilder(command).inheritIO()
                    .redirectInput(new File("/dev/null")).start().waitFor();
            recipe.release();
            if (status != 0) throw new IOException("visit ended with " + status);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                servers, 30000, 15000, new RetryOneTime(1000));
        client.start();
        if (!client.blockUntilConnected(CONNECT_SECONDS, TimeUnit.SECONDS)) {
            System.err.println("curator-peer: no connection to " + servers);
            System.exit(1);
        }
        Map<String, Contender> contenders = new HashMap<>();
        say("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words.length < 2) break;
            contenders.computeIfAbsent(words[0], name -> new Contender())
                    .obey(client, servers, arguments[1], words);
        }
        client.close();
        System.exit(0);  // whatever its threads are waiting for
    }
}
