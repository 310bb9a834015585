import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Runs a command under Curator's mutex: CuratorLock HOST:PORT LOCK COMMAND [ARG...] */
class CuratorLock {
  public static void main(String[] arguments) throws Exception {
    String[] command = java.util.Arrays.copyOfRange(arguments, 2, arguments.length);
    int status;
    try (CuratorFramework client =
        CuratorFrameworkFactory.newClient(arguments[0], new RetryOneTime(1000))) {
      client.start();
      InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
      mutex.acquire();
      status = new ProcessBuilder(command).inheritIO().start().waitFor();
      mutex.release();
    }
    System.exit(status);
  }
}
