package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// Servers use ports from firstPort on. The bus of a Cluster node uses the port that is higher by busOffset. All
	// these ports are below the ports that the kernel gives to connections, so a killed server can use its port again.
	firstPort = 11_000
	ports     = 10_000
	busOffset = 10_000
)

// FreePort returns a port of this machine on which nobody listens and whose bus port is free too. The port also stays
// free while its server does not run, because the kernel never chooses the port for a connection.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(ports)
		if errors.Join(tryListen(port), tryListen(port+busOffset)) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", firstPort, firstPort+ports)
}

func tryListen(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
