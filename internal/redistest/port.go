package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// Ports are below those the kernel hands out to connections, so that a killed
	// server finds its port free when it starts again, and so high that the bus
	// of a Cluster node, which listens busOffset above, is below them as well.
	firstPort = 11_000
	ports     = 10_000
	busOffset = 10_000
)

// FreePort returns a port of this machine that nobody listens on, and whose bus port is free, too. It stays free
// while its server is away: the kernel gives it to nobody who does not ask for it.
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
