// Package reload is how an operator has a running gateway serve another catalogue: requests
// by HTTP over the network or over a socket of the file system, which only the gateway's own
// user can open, and the folder of the catalogue, which is replaced as a whole.
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

// Times that a request may take.
const (
	// headerTime is how long a client of the socket may take to send the header of a request.
	headerTime = 10 * time.Second
	// readTime is how long a client may take to send a request.
	readTime = time.Minute
	// workTime is how long the gateway may take for it: the kinds of a catalogue are in memory
	// before it is served.
	workTime = 6 * time.Minute
	// stopTime is how long a request that runs may take when the gateway stops.
	stopTime = 5 * time.Second
)

// Errors of Listen.
var (
	// ErrInUse: a live process listens there.
	ErrInUse = errors.New("it is in use by another process")
	// ErrTooLong: no socket can have a path of that length.
	ErrTooLong = errors.New("its path is too long for a socket")
)

// maxPath is the longest path of a socket that every system accepts, in bytes.
const maxPath = 103

// Socket is one that listens.
type Socket struct {
	path     string
	listener *net.UnixListener
	// file is the socket itself; something else may be at its path now.
	file os.FileInfo
	// lock is held as long as the process lives. It distinguishes a socket in use from the socket of a dead process.
	lock *flock.Flock
}

// Listen makes the socket, readable and writable for this user alone. It replaces the socket of a
// dead process.
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

// CheckPath returns an error if no socket can be made at a path, whoever asks for it.
func CheckPath(path string) error {
	if len(path)+len(tempSuffix) > maxPath {
		return fmt.Errorf("%s: %w of at most %d bytes", path, ErrTooLong, maxPath-len(tempSuffix))
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	return nil
}

// tempSuffix is at least as long as what follows the folder of the socket while it is made.
const tempSuffix = "/.s4294967295"

// listen makes the socket in a folder that other users cannot enter, and moves it to
// its place once its mode is right.
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

// Serve answers requests until ctx ends; then it gives those that run some seconds. The handlers are of patterns as
// [http.ServeMux] has them.
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
