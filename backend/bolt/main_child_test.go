package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/internal/leaktest"
)

// The environment of a child process: what it does, to which file, from which position.
const (
	childRole = "SLUICE_BOLT_CHILD"
	childPath = "SLUICE_BOLT_PATH"
	childFrom = "SLUICE_BOLT_FROM"
)

// TestMain turns the test binary into a child process where its environment says so.
func TestMain(m *testing.M) {
	if os.Getenv(childRole) == "writers" {
		if err := writeUntilKilled(os.Getenv(childPath), os.Getenv(childFrom)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	leaktest.Main(m)
}

// child starts the test binary again in a role.
func child(t *testing.T, role, path, from string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path, childFrom+"="+from)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// lines calls visit with the fields of each whole line.
func lines(r *bufio.Reader, visit func(fields []string)) error {
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil // without a newline the line was cut off
		}
		if err != nil {
			return err
		}
		visit(strings.Fields(line))
	}
}

const childWriters = 32

// writeUntilKilled prints a line for every acknowledged batch ("A", request id,
// revisions) and for every delivery of a watch ("D", position, revisions).
func writeUntilKilled(path, from string) error {
	s, err := bolt.Open(bolt.Config{Path: path, LogEntries: 1 << 30, LogBytes: 1 << 40})
	if err != nil {
		return err
	}
	ctx := context.Background()
	var w backend.Watch
	w.MaxLag = 1 << 30
	if w.From, err = backend.ParsePosition(from); err != nil {
		return err
	}
	watcher, err := s.Watch(ctx, w)
	if err != nil {
		return err
	}
	failed := make(chan error)
	var mu sync.Mutex
	say := func(what string, revisions []backend.Revision) {
		var b strings.Builder
		b.WriteString(what)
		for _, r := range revisions {
			b.WriteString(" " + r.String())
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Println(b.String())
	}
	go func() {
		for {
			d, err := watcher.Next(ctx)
			if err != nil {
				failed <- err
				return
			}
			var revisions []backend.Revision
			for _, e := range d.Events {
				revisions = append(revisions, e.Revision)
			}
			say("D "+d.Position.String(), revisions)
		}
	}()
	epoch := watcherEpoch(ctx, s)
	for w := range childWriters {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d/%d/%d", epoch, w, i)
				res, err := s.Apply(ctx, backend.Batch{RequestID: id, Deadline: time.Now().Add(time.Minute), Actions: childActions(w, i)})
				if err != nil && !errors.Is(err, backend.ErrNotFound) {
					failed <- err
					return
				}
				if err == nil {
					say("A "+id, res.Revisions)
				}
			}
		}()
	}
	return <-failed
}

func watcherEpoch(ctx context.Context, s *bolt.Store) uint64 {
	p, _ := s.Position(ctx)
	return p.Shard(0).Epoch
}

// childActions are puts with references, requests of deletion and expiries, and deletes.
func childActions(w, i int) []backend.Action {
	k := backend.Key{Kind: "Net", Namespace: "default", Name: fmt.Sprintf("n%d", (w*7+i)%50)}
	if i%9 == 8 {
		return []backend.Action{{Key: k, Op: backend.OpDelete}}
	}
	put := backend.Put{
		UID: "u", Caller: true, Body: backend.EncodeBody([]byte(strings.Repeat("x", i*97%3000+1))),
		Deleting: i%4 == 0, Declared: "d", Refs: []backend.Ref{{Key: backend.Key{Kind: "Net", Namespace: "default", Name: fmt.Sprintf("n%d", i%11)}, Bound: w%2 == 0}},
	}
	if i%5 == 0 {
		put.ExpiresAt = time.Now().Add(time.Duration(i%3) * time.Millisecond)
	}
	other := k
	other.Kind = "Port"
	return []backend.Action{{Key: k, Op: backend.OpPut, Put: put}, {Key: other, Op: backend.OpPut, Put: put}}
}
