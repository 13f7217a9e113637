package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// The shortest and the longest pause between two probes for space.
const (
	minSpacePause = time.Second
	maxSpacePause = 10 * time.Second
)

// space describes whether the disk is full. The zero value means that it is not.
type space struct {
	full  bool
	bytes int // the size of the largest group that did not fit
	pause time.Duration
	// probeAt is when to probe again.
	probeAt time.Time
}

// isNoSpace reports whether a commit has failed because there was no space for its pages. Such a commit has had no
// effect: bbolt has rolled back, and the page that makes a commit valid is written last. isNoSpace reports false for a
// failed sync, after which the effect is not known.
func isNoSpace(err error) bool {
	full := func(errno syscall.Errno) bool {
		var write *fs.PathError
		if errors.As(err, &write) && write.Op == "write" {
			return errors.Is(err, errno)
		}
		// bbolt does not wrap the cause of this error.
		text := err.Error()
		return strings.HasPrefix(text, "file resize error:") && strings.Contains(text, errno.Error())
	}
	return full(syscall.ENOSPC) || full(syscall.EDQUOT) || full(syscall.EFBIG)
}

// outOfSpace records that the disk is full, and answers the group for whose changes there was no space.
func (c *core) outOfSpace(group []*call, cause error) {
	size := 0
	for _, call := range group {
		size += call.size
	}
	c.mu.Lock()
	if !c.space.full {
		c.cfg.Logger.Error("no space is left; the store takes no changes until there is some", zap.Error(cause))
	}
	c.space.full, c.space.bytes = true, max(c.space.bytes, size)
	c.space.postpone()
	c.mu.Unlock()
	refuse(group, errNoSpace(), errNoSpace())
}

func errNoSpace() error { return fmt.Errorf("%w: %w", backend.ErrUnavailable, backend.ErrNoSpace) }

// postpone doubles the pause, within its limits, and sets the time of the next probe.
func (s *space) postpone() {
	s.pause = min(max(2*s.pause, minSpacePause), maxSpacePause)
	s.probeAt = time.Now().Add(s.pause)
}

// checkSpace returns an error while the disk is full. From time to time it probes whether there is space now for the
// changes that did not fit.
func (c *core) checkSpace() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.space.full:
		return nil
	case time.Now().Before(c.space.probeAt):
		return errNoSpace()
	}
	c.space.postpone() // nobody else probes meanwhile
	bytes := c.space.bytes
	c.mu.Unlock()
	err := c.cfg.probe(2*bytes + probeSlack)
	c.mu.Lock()
	if err != nil {
		return errNoSpace()
	}
	c.space = space{}
	c.cfg.Logger.Info("there is space again")
	return nil
}

// probeSlack is how many bytes a probe writes in addition to twice the size of the changes that did not fit. A change
// also rewrites the pages above its page.
const probeSlack = 1 << 20

// probeSpace writes a file of a given size in the folder of the store's file, and removes it.
func (c Config) probeSpace(bytes int) (err error) {
	f, err := os.CreateTemp(filepath.Dir(c.Path), ".space-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	for zero := make([]byte, 64<<10); bytes > 0; bytes -= len(zero) {
		if _, err := f.Write(zero[:min(bytes, len(zero))]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Ready returns an error if the store cannot serve requests: the file is not open or is damaged, or there is no space
// for changes.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if _, err := s.core.database(ctx); err != nil {
		return err
	}
	if d := s.core.damaged.Load(); d != nil {
		return d
	}
	return s.core.checkSpace()
}
