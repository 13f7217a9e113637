// Package reload lets operators replace the catalogue of a running gateway. Requests come by HTTP, over the network or
// over a unix socket that only the gateway's user can open. The package also replaces the folder of the catalogue
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

// The time limits of a request.
const (
	// headerTime is the time limit for receiving the header of a request on the socket.
	headerTime = 10 * time.Second
	// readTime is the time limit for receiving a request.
	readTime = time.Minute
	// workTime is the time limit for executing a request. That includes reading the resources of the catalogue's kinds
	// into memory.
	workTime = 6 * time.Minute
	// stopTime is how long a gateway that stops waits for running requests.
	stopTime = 5 * time.Second
)

// The errors of Listen.
var (
	// ErrInUse means that another process listens on the socket.
	ErrInUse = errors.New("it is in use by another process")
	// ErrTooLong means that the path is too long for a socket.
	ErrTooLong = errors.New("its path is too long for a socket")
)

// maxPath is the maximum length of the path of a socket in bytes that all systems accept.
const maxPath = 103

// Socket is a listening socket.
type Socket struct {
	path     string
	listener *net.UnixListener
	// file describes the file that was created for the socket. Another file may be at the path by now.
	file os.FileInfo
	// lock is held until the process ends. If the lock of a socket is free, its process is dead.
	lock *flock.Flock
}

// Listen creates a socket that only this user can open. It replaces the socket of a dead process.
func Listen(path string) (*Socket, error) {
	s := &Socket{path: path, lock: flock.New(path+lockSuffix, flock.SetPermissions(0o600))}
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

// CheckFree returns [ErrInUse] if another process listens on the socket at a path. It changes nothing.
func CheckFree(path string) error {
	if _, err := os.Stat(path + lockSuffix); err != nil {
		return nil //nolint:nilerr // no process has listened there yet
	}
	lock := flock.New(path+lockSuffix, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err == nil && !free {
		err = fmt.Errorf("%s: %w", path, ErrInUse)
	}
	return errors.Join(err, lock.Close())
}

// lockSuffix is the suffix of the file whose lock the process holds.
const lockSuffix = ".lock"

// tempSuffix is the longest possible suffix of the path while the socket is being created.
const tempSuffix = "/.s4294967295"

// listen creates the socket in a folder that other users cannot open, sets its mode, and moves it to its path.
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

// Serve serves requests until ctx ends, and then waits a few seconds for running requests. The keys of handlers are
// patterns for [http.ServeMux].
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

// Close removes the socket, unless another file is at its path.
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
