package redistest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Server is a redis-server for one test. Its methods fail the test if they do not succeed. Only one goroutine at a time
// may call them.
type Server struct {
	// Addr is the address, in the form host:port.
	Addr string
	// Dir is the folder of the server's files; empty for a shared server.
	Dir string
	// TLS has the files for clients. It is nil for a server without TLS.
	TLS *TLSFiles

	t      testing.TB
	cfg    config
	proc   *process
	client *redis.Client
	down   bool // killed or stopped by the test
}

// Start starts a server and returns when it answers.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := start(t.TempDir(), opts)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.attach(t)
	t.Cleanup(s.proc.kill) // before the folder is removed
	if s.cfg.replicaOf != "" {
		s.awaitSync()
	}
	return s
}

// portAttempts is the maximum number of ports that are tried. Another process may take a port after the search for a
// free port and before the server listens.
const portAttempts = 10

// start starts a server and returns the server when it answers. If dir is empty, the server keeps no files.
func start(dir string, opts []Option) (*Server, error) {
	s := &Server{Dir: dir, proc: &process{}}
	for _, o := range opts {
		o(&s.cfg)
	}
	if s.cfg.tls {
		var err error
		if s.TLS, err = writeCertificates(dir); err != nil {
			return nil, err
		}
	}
	for range portAttempts {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		s.Addr = loopback(port)
		if err := s.configure(port); err != nil {
			return nil, err
		}
		if err := s.up(); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, errPortTaken
}

// configure sets the arguments and the configuration of the process.
func (s *Server) configure(port int) error {
	dir := s.Dir
	if dir == "" {
		dir = os.TempDir() // the configuration must have a folder
	}
	text, err := s.cfg.file(port, dir)
	if err != nil {
		return err
	}
	s.proc.args = []string{"-"}
	if s.Dir == "" {
		s.proc.stdin = text
		return nil
	}
	path := filepath.Join(s.Dir, "redis.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	s.proc.args[0] = path
	if s.cfg.sentinel {
		s.proc.args = append(s.proc.args, "--sentinel")
	}
	return nil
}

var errPortTaken = errors.New("the port was taken by another process")

// up starts the process and returns when the server answers. If another process has taken the port, the error is
// errPortTaken.
func (s *Server) up() error {
	if err := s.proc.start(); err != nil {
		return err
	}
	var died error
	err := await(func() error {
		select {
		case <-s.proc.ended():
			died = fmt.Errorf("redis-server %s ended at once:\n%s", s.Addr, &s.proc.log)
			if strings.Contains(died.Error(), "Address already in use") {
				died = errPortTaken
			}
			return nil
		default:
			return s.ping()
		}
	})
	switch {
	case died != nil:
		return died
	case err != nil:
		s.proc.kill()
		return fmt.Errorf("redis-server %s does not answer: %w", s.Addr, err)
	}
	return nil
}

// ping returns nil if the server answers PING, which it does once its data is loaded. It also checks the process id in
// the answer, because another process may have taken the port. It does not use s.client, which would log each refused
// connection.
func (s *Server) ping() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	request, in := "INFO server\r\nPING\r\n", bufio.NewReader(c)
	if s.cfg.user != (credentials{}) {
		request = "AUTH " + adminName + " " + adminPassword + "\r\n" + request
	}
	if _, err := c.Write([]byte(request)); err != nil {
		return err
	}
	own := false
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSpace(line)
		switch {
		case line == fmt.Sprint("process_id:", s.proc.pid()):
			own = true
		case line == "+PONG" && !own:
			return errors.New("another server answers")
		case line == "+PONG":
			return nil
		case strings.HasPrefix(line, "-"):
			return fmt.Errorf("PING: %s", line)
		}
	}
}

func (s *Server) dial() (net.Conn, error) {
	if s.TLS != nil {
		return tls.DialWithDialer(&net.Dialer{Timeout: dialTimeout}, "tcp", s.Addr, s.TLS.Config)
	}
	return net.DialTimeout("tcp", s.Addr, dialTimeout)
}

// attach makes the server belong to a test. When the test ends, the client of the server is closed. If the test has
// failed, the log of the server is printed.
func (s *Server) attach(t testing.TB) {
	s.t, s.client = t, s.newClient()
	t.Cleanup(func() {
		_ = s.client.Close()
		if t.Failed() {
			t.Logf("redis-server %s logged:\n%s", s.Addr, &s.proc.log)
		}
	})
}

func (s *Server) newClient() *redis.Client {
	o := &redis.Options{
		Addr: s.Addr, DialerRetries: 1, PoolSize: 4,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if s.TLS != nil {
		o.TLSConfig = s.TLS.Config
	}
	if s.cfg.user != (credentials{}) {
		o.Username, o.Password = adminName, adminPassword
	}
	return redis.NewClient(o)
}

// Client returns a client for the test. The client may execute all commands, and is closed when the test ends.
func (s *Server) Client() *redis.Client { return s.client }

// URL returns the URL by which a gateway uses the server. The scheme is redis or rediss. If there is a [User], the URL
// has the name and the password of the user.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr, Path: "/0"}
	if s.TLS != nil {
		u.Scheme = "rediss"
	}
	if s.cfg.user != (credentials{}) {
		u.User = url.UserPassword(s.cfg.user.name, s.cfg.user.password)
	}
	return u.String()
}

// Kill kills the server and returns when it has ended.
func (s *Server) Kill() {
	s.down = true
	s.proc.kill()
}

// Restart starts the server again, with the same port, configuration and files, and returns when the server answers. It
// first kills a server that is still running.
func (s *Server) Restart() {
	s.t.Helper()
	s.proc.kill()
	s.repairAOF()
	if err := s.up(); err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
	s.down = false
}

// Stop stops the server by SIGSTOP. The server's connections stay open, but it does not answer, as in a network
// partition.
func (s *Server) Stop() {
	s.t.Helper()
	s.down = true
	s.signal(syscall.SIGSTOP)
}

// Cont lets the server continue after a Stop.
func (s *Server) Cont() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
	s.down = false
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.proc.signal(sig); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// Do sends one command and returns the reply.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	v, err := s.client.Do(s.t.Context(), args...).Result()
	if err != nil {
		s.t.Fatalf("redistest: %s: %v: %v", s.Addr, args, err)
	}
	return v
}
