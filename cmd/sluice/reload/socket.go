// Package reload lets an operator make a running gateway serve another catalogue. Requests
// arrive by HTTP over the network, or over a socket in the file system, which only the
// gateway's own user can open. The package also replaces the folder of the catalogue
// atomically.
package reload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Time limits of a request.
const (
	// headerTime bounds the time in which a client of the socket must send the header of a
	// request.
	headerTime = 10 * time.Second
	// readTime bounds the time in which a client must send a request.
	readTime = time.Minute
	// workTime bounds the execution of a request. The resources of a catalogue's kinds are
	// read into memory before it is served.
	workTime = 6 * time.Minute
	// stopTime is how long the gateway waits for running requests when it stops.
	stopTime = 5 * time.Second
)

// Errors of Listen.
var (
	// ErrInUse means that another process listens on the socket.
	ErrInUse = errors.New("it is in use by another process")
	// ErrTooLong means that the path is too long for a socket.
	ErrTooLong = errors.New("its path is too long for a socket")
)

// maxPath is the maximum length in bytes of a path to a socket that every system
// accepts.
const maxPath = 103

// Socket is a listening socket.
type Socket struct {
	path     string
	listener *net.UnixListener
	// file is the socket's own file. Another file may have replaced it at its path.
	file os.FileInfo
	// lock is held as long as the process lives. Without the lock, a socket is known to be left
	// from a dead process.
	lock *flock.Flock
}

// Listen creates a socket that only this user can access. It replaces the socket of a dead
// process.
func Listen(path string) (*Socket, error) {
	s := &Socket{path: path, lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	switch held, err := s.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case !held:
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err := s.listen(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.lock.Unlock())
	}
	return s, nil
}

// CheckPath returns an error if no socket can be created at a path.
func CheckPath(path string) error {
	if len(path)+len(tempSuffix) > maxPath {
		return fmt.Errorf("%s: %w of at most %d bytes", path, ErrTooLong, maxPath-len(tempSuffix))
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	return nil
}

// tempSuffix is at least as long as the suffix that is added to the folder while the socket
// is created.
const tempSuffix = "/.s4294967295"

// listen creates the socket in a folder that other users cannot enter, sets its mode,
// and moves it to its path.
func (s *Socket) listen() error {
	dir, err := os.MkdirTemp(filepath.Dir(s.path), ".s")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	temp := filepath.Join(dir, "s")
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"}); err != nil {
		return err
	}
	s.listener.SetUnlinkOnClose(false) // it is moved
	if err = os.Chmod(temp, 0o600); err == nil {
		s.file, err = os.Lstat(temp)
	}
	if err == nil {
		err = os.Rename(temp, s.path)
	}
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	return nil
}

// Serve answers requests until ctx ends, and then waits for running ones for some seconds. The keys
// of handlers are patterns of [http.ServeMux].
func (s *Socket) Serve(ctx context.Context, handlers map[string]http.Handler) error {
	mux := http.NewServeMux()
	for pattern, h := range handlers {
		mux.Handle(pattern, h)
	}
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      readTime,
		IdleTimeout:       headerTime,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("admin socket: %w", err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if srv.Shutdown(limit) != nil {
		_ = srv.Close()
	}
	<-failed
	return nil
}

// Close removes the socket, unless something else has taken its place.
func (s *Socket) Close() error {
	_ = s.listener.Close() // Serve has closed it already
	info, err := os.Lstat(s.path)
	if err == nil && info.Mode()&os.ModeSocket != 0 && os.SameFile(info, s.file) {
		err = os.Remove(s.path)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.lock.Unlock())
}
