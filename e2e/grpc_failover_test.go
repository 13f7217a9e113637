package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluicegw/sluice/internal/redistest"
)

// detailsOf returns the details of an error that clients act on; nil for none.
func detailsOf(err error) (info *errdetails.ErrorInfo, retry *errdetails.RetryInfo) {
	known, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil, nil
	}
	for _, d := range known.Details() {
		switch value, _ := d.Value(); value := value.(type) {
		case *errdetails.ErrorInfo:
			info = value
		case *errdetails.RetryInfo:
			retry = value
		}
	}
	return info, retry
}

// crewState is a resource in an answer or an event.
type crewState struct {
	Metadata struct{ Name, Revision string }
}

// crewWriter changes one resource, as a client that goes by the codes of errors.
type crewWriter struct {
	client   *grpcClient
	name     string
	revision string
	// made are the revisions that the writer knows to be made, in order.
	made []string
	// count is the number of changes of all writers that were made. unavailable is how many were refused.
	count, unavailable *atomic.Int64
}

// write makes one change. It returns an error that it should not have got.
func (w *crewWriter) write(i int) error {
	method := "UpdateCrew"
	if w.revision == "" {
		method = "CreateCrew"
	}
	answer, err := w.client.call(method, fmt.Sprintf(
		`{"crew": {"metadata": {"name": %q, "revision": %q}, "spec": {"email": "%d@example.org"}}}`, w.name, w.revision, i,
	))
	info, retry := detailsOf(err)
	switch {
	case err == nil:
		return w.accept(answer)
	case connect.CodeOf(err) == connect.CodeUnavailable && retry.GetRetryDelay().AsDuration() > 0:
		w.unavailable.Add(1)
		return nil // nothing was changed: the same change may be made later
	case connect.CodeOf(err) == connect.CodeUnknown && retry == nil && info.GetMetadata()["outcome"] == "UNKNOWN":
		return w.read()
	}
	return fmt.Errorf("%s of %s at %s: %w, %v, %v", method, w.name, w.revision, err, info, retry)
}

// read finds out whether a change was made whose outcome is not known.
func (w *crewWriter) read() error {
	for {
		answer, err := w.client.call("GetCrew", fmt.Sprintf(`{"name": %q}`, w.name))
		switch connect.CodeOf(err) {
		case connect.CodeUnavailable:
			continue
		case connect.CodeNotFound:
			return nil
		}
		if err != nil {
			return err
		}
		return w.accept(answer)
	}
}

func (w *crewWriter) accept(answer string) error {
	var now crewState
	if err := json.Unmarshal([]byte(answer), &now); err != nil {
		return err
	}
	if now.Metadata.Revision == w.revision {
		return nil
	}
	w.revision = now.Metadata.Revision
	w.made = append(w.made, w.revision)
	w.count.Add(1)
	return nil
}

// crewWatcher follows crews from stream to stream.
type crewWatcher struct {
	client *grpcClient
	mu     sync.Mutex // guards seen
	// seen are the revisions in events, by name.
	seen   map[string][]string
	cursor string
	begun  chan struct{}
}

// run returns when ctx ends, or with an error that a stream should not have.
func (w *crewWatcher) run(ctx context.Context) error {
	begun := sync.OnceFunc(func() { close(w.begun) })
	for ctx.Err() == nil {
		client, req, err := w.client.method("WatchCrews", fmt.Sprintf(`{"cursor": %q}`, w.cursor))
		if err != nil {
			return err
		}
		stream, err := client.CallServerStream(ctx, req)
		if err != nil {
			return err
		}
		for stream.Receive() {
			raw, err := protojson.Marshal(stream.Msg())
			if err != nil {
				return err
			}
			if err := w.event(raw); err != nil {
				return err
			}
			begun()
		}
		err = stream.Err()
		_ = stream.Close()
		info, retry := detailsOf(err)
		if ctx.Err() == nil && (info == nil || retry.GetRetryDelay().AsDuration() <= 0) {
			return fmt.Errorf("the stream ends with %w, %v, %v", err, info, retry)
		}
	}
	return nil
}

func (w *crewWatcher) event(raw []byte) error {
	var e struct {
		Type, Cursor string
		Crew         crewState
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	w.cursor = e.Cursor
	switch strings.TrimPrefix(e.Type, "WATCH_EVENT_TYPE_") {
	case "ADDED", "MODIFIED":
		w.mu.Lock()
		defer w.mu.Unlock()
		name := e.Crew.Metadata.Name
		w.seen[name] = append(w.seen[name], e.Crew.Metadata.Revision)
		return nil
	case "IN_SYNC", "BOOKMARK":
		return nil
	}
	return fmt.Errorf("there is an event %s", raw)
}

// of returns the revisions of a resource in events.
func (w *crewWatcher) of(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[name])
}

// TestGRPC_NothingIsLostOrRepeatedWhileThePrimaryIsReplaced has writers at one gateway and a stream at another, while the
// Sentinels of their store replace its primary.
func TestGRPC_NothingIsLostOrRepeatedWhileThePrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	const writers, changes = 4, 40
	sentinels := redistest.Sentinel(t, 1)
	dir := t.TempDir()
	kinds, numbers := filepath.Join(dir, "kinds"), filepath.Join(dir, "numbers.txt")
	if err := errors.Join(os.Mkdir(kinds, 0o700), os.WriteFile(filepath.Join(kinds, "crew.graphqls"), []byte(crew), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := sluice(t, "", "proto", "print", kinds, "--numbers", numbers); code != 0 {
		t.Fatal(out, errOut)
	}
	gateway := func() *grpcClient {
		return start(t, "", "--redis", sentinels.URL(), "--redis-durability", "replica", "--catalogue", kinds,
			"--service-listen", "127.0.0.1:0", "--field-numbers", numbers).grpcClient(nil)
	}
	at, other := gateway(), gateway()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watcher := &crewWatcher{client: other, seen: map[string][]string{}, begun: make(chan struct{})}
	var watched, written sync.WaitGroup
	watched.Go(func() {
		if err := watcher.run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-watcher.begun
	var count, unavailable atomic.Int64
	all := make([]*crewWriter, writers)
	finish := make(chan struct{})
	for i := range all {
		w := &crewWriter{client: at, name: fmt.Sprint("w", i), count: &count, unavailable: &unavailable}
		all[i] = w
		written.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-finish:
					return
				default:
				}
				if err := w.write(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	awaitCount := func(least int64) {
		t.Helper()
		redistest.Await(t, fmt.Sprint(least, " changes are made"), func() error {
			if n := count.Load(); n < least {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
	}
	awaitCount(changes)
	first := sentinels.Primary()
	first.Kill()
	second := sentinels.AwaitFailover(first)
	first.Restart()
	second.AwaitReplicas(1)
	awaitCount(count.Load() + changes)
	close(finish)
	written.Wait()
	t.Log(count.Load(), "changes were made,", unavailable.Load(), "were refused meanwhile")

	for _, w := range all {
		redistest.Await(t, "the events of "+w.name, func() error {
			if seen := watcher.of(w.name); !slices.Contains(seen, w.revision) {
				return fmt.Errorf("%d of %d changes are seen", len(seen), len(w.made))
			}
			return nil
		})
		if seen := watcher.of(w.name); !slices.Equal(seen, w.made) {
			t.Errorf("%s: seen %q\nmade %q", w.name, seen, w.made)
		}
		stale := fmt.Sprintf(`{"crew": {"metadata": {"name": %q, "revision": %q}, "spec": {"email": "e"}}}`, w.name, w.made[0])
		_, err := at.call("UpdateCrew", stale)
		if info, _ := detailsOf(err); connect.CodeOf(err) != connect.CodeAborted || info.GetMetadata()["currentRevision"] != w.revision {
			t.Error(err, info)
		}
		_, err = at.call("CreateCrew", stale)
		if info, _ := detailsOf(err); connect.CodeOf(err) != connect.CodeAlreadyExists || info.GetReason() != "ALREADY_EXISTS" {
			t.Error(err, info)
		}
	}
	stop()
	watched.Wait()
}
