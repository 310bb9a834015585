// A program that locks through go-zookeeper, for interoperability tests.
//
//	go_peer SERVERS VISIT
//
// Speaks the language of curator-peer, with one RECIPE: lock. `acquire` takes no MS: the library's
// lock waits for ever. Needs Debian's golang-github-samuel-go-zookeeper-dev to build.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

// Gives up if it cannot connect in this time, so that an ended test leaves no program behind.
const connectTime = 180 * time.Second

var said sync.Mutex

func say(line string) {
	said.Lock()
	defer said.Unlock()
	fmt.Println(line)
}

// silent discards the library's log.
type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func connect(servers string) (*zk.Conn, error) {
	client, events, err := zk.Connect(strings.Split(servers, ","), 30*time.Second,
		zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	limit := time.After(connectTime)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return client, nil
			}
		case <-limit:
			return nil, errors.New("no connection to " + servers)
		}
	}
}

// contender is one lock and its queue of commands.
type contender struct {
	name  string
	told  chan []string
	lock  *zk.Lock
	visit string
}

func (self *contender) obey(client *zk.Conn) {
	for words := range self.told {
		answer, err := self.answer(client, words)
		if err != nil {
			answer = "error: " + err.Error()
		}
		say(self.name + " " + answer)
	}
}

func (self *contender) answer(client *zk.Conn, words []string) (string, error) {
	switch {
	case words[0] == "make" && words[1] == "lock":
		self.lock = zk.NewLock(client, words[2], zk.WorldACL(zk.PermAll))
		return "made", nil
	case words[0] == "acquire":
		return "acquired", self.lock.Lock()
	case words[0] == "release":
		return "released", self.lock.Unlock()
	case words[0] == "rounds":
		count, err := strconv.Atoi(words[1])
		for i := 0; i < count && err == nil; i++ {
			err = self.round(words[2], words[3])
		}
		return "done", err
	}
	return "", errors.New("no such command: " + strings.Join(words, " "))
}

func (self *contender) round(directory, limit string) error {
	if err := self.lock.Lock(); err != nil {
		return err
	}
	visit := exec.Command(self.visit, directory, self.name, limit)
	visit.Stderr = os.Stderr
	visited := visit.Run()
	if err := self.lock.Unlock(); err != nil {
		return err
	}
	return visited
}

func main() {
	client, err := connect(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "go_peer:", err)
		os.Exit(1)
	}
	contenders := map[string]*contender{}
	say("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		one := contenders[words[0]]
		if one == nil {
			one = &contender{name: words[0], told: make(chan []string, 16), visit: os.Args[2]}
			contenders[words[0]] = one
			go one.obey(client)
		}
		one.told <- words[1:]
	}
	client.Close()
}
