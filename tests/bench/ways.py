"""zklock by each way to a server: plain, TLS, SASL, and ssh through an sshd on loopback."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile

from peers import Zklock
from servers import ZooKeeper

_SSHD = "/usr/sbin/sshd"

_PREPARE = """
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=ca -days 9
for name in server host; do
  openssl req $key -keyout $name.key -out $name.csr -subj /CN=$name
  echo subjectAltName=IP:127.0.0.1 >names
  openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 \\
    -extfile names -out $name.crt
  cat $name.key $name.crt >$name.pem
done
for name in sshd user; do ssh-keygen -q -t ed25519 -N '' -f $name; done
echo "[127.0.0.1]:$1 $(cut -d ' ' -f 1,2 sshd.pub)" >known
echo sasl:bench:secret >auth
chmod 600 ./*.pem auth
cat >jaas.conf <<END
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_bench="secret";
};
END
cat >sshd_config <<END
ListenAddress 127.0.0.1:$1
HostKey $PWD/sshd
PidFile none
AuthorizedKeysFile $PWD/user.pub
StrictModes no
UsePAM no
END
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
"""

_SSH = ("ssh -F none -p {port} -l {user} -i {directory}/user -o IdentitiesOnly=yes -o BatchMode=yes"
        " -o UserKnownHostsFile={directory}/known -W %h:%p 127.0.0.1")


class Way(Zklock):
    """zklock with some options."""

    def __init__(self, zookeeper, tools, word, title, options):
        super().__init__(zookeeper, tools)
        self.word, self.title, self._options = word, title, options

    def run(self, lock, command, timeout=None):
        return [f"{self.tools}/zklock", "exclusive", *self._options, lock, "--", *command]


def missing():
    return [word for word in ("openssl", "ssh-keygen", "ssh", _SSHD) if shutil.which(word) is None]


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@contextlib.contextmanager
def open_ways(tools):
    """Yields each Way, all to one server."""
    directory = tempfile.mkdtemp(prefix="zklock-bench-ways-")
    secure, bastion = _free_port(), _free_port()
    daemon = None
    try:
        subprocess.run(["sh", "-ec", _PREPARE, "sh", str(bastion)], cwd=directory, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        daemon = subprocess.Popen([_SSHD, "-D", "-f", f"{directory}/sshd_config"],
                                  stderr=subprocess.DEVNULL)
        settings = ["serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                    f"secureClientPort={secure}", "secureClientPortAddress=127.0.0.1",
                    f"ssl.keyStore.location={directory}/server.pem",
                    f"ssl.trustStore.location={directory}/ca.pem", "ssl.clientAuth=want",
                    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"]
        options = [word for line in settings for word in ("--set", line)]
        options += ["--java", f"-Djava.security.auth.login.config={directory}/jaas.conf"]
        with ZooKeeper(options=options) as server:
            plain = ["-z", server.servers]
            tls = ["-z", f"127.0.0.1:{secure}", "--tls-ca", f"{directory}/ca.pem"]
            sasl = ["--sasl", "digest-md5", "--auth-file", f"{directory}/auth", "--acl", "open"]
            ssh = _SSH.format(port=bastion, user=getpass.getuser(), directory=directory)
            yield [Way(server, tools, *way) for way in (
                ("plain", "plain", plain),
                ("tls", "TLS", tls),
                ("mutual", "mutual TLS", [*tls, "--tls-cert", f"{directory}/host.pem"]),
                ("sasl", "SASL (DIGEST-MD5)", [*plain, *sasl]),
                ("both", "SASL over TLS", [*tls, *sasl]),
                ("ssh", "`ssh -W` as the proxy command", [*plain, "--proxy-command", ssh]))]
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait()
        shutil.rmtree(directory, ignore_errors=True)
