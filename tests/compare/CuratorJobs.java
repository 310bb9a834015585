import java.util.Arrays;
import java.util.Random;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Runs a command under Curator's mutex, again and again: CuratorJobs SERVERS SECONDS LOCK COMMAND
 * [ARG...]
 *
 * <p>As Curator's documentation advises, a ConnectionStateListener watches the connection: while it is
 * suspended or lost the lock may have been lost, so the command is killed at once, and none is
 * started.
 */
class CuratorJobs {
  private static Process process;
  private static boolean inDoubt;

  private static synchronized void onState(ConnectionState state) {
    if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
      inDoubt = true;
      if (process != null) process.destroyForcibly();
    }
  }

  private static synchronized void trust() {
    inDoubt = false;
  }

  private static synchronized Process start(String[] command) throws Exception {
    // In doubt since the lock was asked for.
    process = inDoubt ? null : new ProcessBuilder(command).inheritIO().start();
    return process;
  }

  private static synchronized void forget() {
    process = null;
  }

  public static void main(String[] arguments) throws Exception {
    String[] command = Arrays.copyOfRange(arguments, 3, arguments.length);
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(arguments[0])
            .sessionTimeoutMs(1000 * Integer.parseInt(arguments[1]))
            .retryPolicy(new ExponentialBackoffRetry(1000, 3))
            .build();
    client.getConnectionStateListenable().addListener((of, state) -> onState(state));
    client.start();
    InterProcessMutex mutex = new InterProcessMutex(client, arguments[2]);
    Random random = new Random();
    while (true) {
      try {
        trust();
        if (client.getZookeeperClient().isConnected()) {
          mutex.acquire();
          try {
            Process started = start(command);
            if (started != null) started.waitFor();
          } finally {
            forget();
            mutex.release();
          }
        }
      } catch (Exception error) {
        System.err.println("CuratorJobs: " + error);
      }
      Thread.sleep(50 + random.nextInt(250));
    }
  }
}
