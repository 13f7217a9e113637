package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/redistest"
)

// world is a store with a hub.
type world struct {
	t     *testing.T
	store *memory.Store
	hub   *hub.Hub
	path  string
	log   *zap.Logger
	n     int
	// stored maps each stored key to its revision.
	stored map[backend.Key]backend.Revision
}

func newWorld(t *testing.T, cfg memory.Config) *world {
	t.Helper()
	store, err := memory.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.New(hub.Config{Store: store, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		_ = store.Close()
	})
	return &world{t: t, store: store, hub: h, path: filepath.Join(t.TempDir(), "audit.log"), log: zap.NewNop(), stored: map[backend.Key]backend.Revision{}}
}

// put changes a resource.
func (w *world) put(kind, name, actor string) {
	w.t.Helper()
	w.n++
	key, none := backend.Key{Kind: kind, Namespace: "default", Name: name}, 0
	action := backend.Action{Key: key, Op: backend.OpPut, Put: backend.Put{UID: "u", Finalizers: &none, Body: append([]byte{backend.BodyJSON}, `{"spec":{}}`...)}}
	if was := w.stored[key]; !was.IsZero() {
		action.If, action.Put.Change = backend.Condition{Presence: backend.Present, Revision: was}, []byte(`{"before":{},"paths":["spec.size"]}`)
	}
	res, err := w.store.Apply(w.t.Context(), backend.Batch{RequestID: fmt.Sprint("r", w.n), Actor: actor, Deadline: time.Now().Add(time.Hour), Actions: []backend.Action{action}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.stored[key] = res.Resources[0].Revision
}

// run runs the log over a file until stop.
func (w *world) run(file *audit.File) (l *audit.Log, stop func()) {
	w.t.Helper()
	l, err := audit.Open(w.t.Context(), audit.Config{Hub: w.hub, Sensitive: func(kind string) bool { return kind == "Secret" }, To: file, Logger: w.log})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// lines returns the whole lines of all files, oldest file first.
func (w *world) lines() (out []audit.Line) {
	w.t.Helper()
	files, err := filepath.Glob(w.path + ".*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range append(files, w.path) {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) { // a reader may see half of a write that crosses a page
				continue
			}
			var one audit.Line
			if err := json.Unmarshal(line, &one); err != nil {
				w.t.Fatalf("%q: %v", line, err)
			}
			out = append(out, one)
		}
	}
	return out
}

// wait waits until there are lines of n changes, and returns the changes.
func (w *world) wait(n int) (out []audit.Line) {
	w.t.Helper()
	redistest.Await(w.t, "the changes are written", func() error {
		out = nil
		for _, line := range w.lines() {
			if line.Revision != "" {
				out = append(out, line)
			}
		}
		if len(out) < n {
			return fmt.Errorf("%d of %d", len(out), n)
		}
		return nil
	})
	return out
}

func TestAudit_ALineSaysWhoChangedWhat(t *testing.T) {
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path})
	defer stop()
	w.until(func() bool { return len(w.lines()) == 1 })
	by := access.Actor{Name: "token:ci", Address: "192.0.2.1", Request: "id-1"}
	w.put("Network", "a", by.String())
	w.put("Network", "a", access.Actor{Name: access.Gateway}.String())
	w.put("Secret", "s", by.String())
	w.put("Secret", "s", by.String())
	got := w.wait(4)
	w.until(func() bool { return l.Behind() == 0 })
	for i, want := range []string{
		"ADDED Network a token:ci 192.0.2.1 id-1 []",
		"MODIFIED Network a system:gateway   [spec.size]",
		"ADDED Secret s token:ci 192.0.2.1 id-1 []",
		"MODIFIED Secret s token:ci 192.0.2.1 id-1 []",
	} {
		g := got[i]
		if text := fmt.Sprint(g.Event, " ", g.Kind, " ", g.Name, " ", g.By, " ", g.Address, " ", g.RequestID, " ", g.Paths); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
	ctx := access.WithCaller(t.Context(), access.Caller{Address: netip.MustParseAddr("192.0.2.2"), Request: "id-2"})
	l.Refuse(ctx, &failure.Error{Code: failure.CodeUnauthenticated})
	if err := l.Reveal(ctx, backend.Key{Kind: "Secret", Namespace: "default", Name: "s"}); err != nil {
		t.Error(err)
	}
	all := w.lines()
	refused, revealed := all[len(all)-2], all[len(all)-1]
	if refused.Event != audit.Refused || refused.Code != "UNAUTHENTICATED" || refused.By != access.Anonymous || refused.Address != "192.0.2.2" || revealed.Event != audit.Revealed || revealed.Name != "s" {
		t.Errorf("%+v\n%+v", refused, revealed)
	}
}

// until waits for a condition.
func (w *world) until(so func() bool) {
	w.t.Helper()
	redistest.Await(w.t, "the audit log", func() error {
		if !so() {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestAudit_EachChangeIsWrittenOnceOverRestartsCutsAndRotations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path, Size: 2000})
	w.until(func() bool { return len(w.lines()) > 0 })
	total := 0
	for range 30 {
		for range rnd.IntN(20) {
			w.put("Network", fmt.Sprint("n", rnd.IntN(5)), "token:ci\t\t")
			total++
		}
		switch rnd.IntN(3) {
		case 0: // a crash, which cuts the last lines
			stop()
			if info, err := os.Stat(w.path); err == nil && info.Size() > 0 {
				text, err := os.ReadFile(w.path)
				if err != nil {
					t.Fatal(err)
				}
				first := int64(bytes.IndexByte(text, '\n') + 1)
				if left := info.Size() - first; left > 0 {
					if err := os.Truncate(w.path, first+rnd.Int64N(left)); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, stop = w.run(&audit.File{Path: w.path, Size: 2000})
		case 1:
			stop()
			_, stop = w.run(&audit.File{Path: w.path, Size: 2000})
		}
	}
	for range 20 { // at last the file is too large before something is written
		w.put("Network", "last", "")
		total++
		w.wait(total)
	}
	got := w.wait(total)
	stop()
	var was backend.Revision
	for _, line := range got {
		revision, err := backend.ParseRevision(line.Revision)
		if err != nil || revision.Seq != was.Seq+1 && !was.IsZero() {
			t.Fatalf("after %v: %s, %v", was, line.Revision, err)
		}
		was = revision
	}
	if len(got) != total {
		t.Errorf("%d lines of %d changes", len(got), total)
	}
	if files, _ := filepath.Glob(w.path + ".*"); len(files) == 0 {
		t.Error("the file was never rotated")
	}
}

func TestAudit_AGapIsTold(t *testing.T) {
	w := newWorld(t, memory.Config{LogEntries: 3})
	_, stop := w.run(&audit.File{Path: w.path})
	w.until(func() bool { return len(w.lines()) > 0 })
	stop()
	for i := range 10 {
		w.put("Network", fmt.Sprint("n", i), "")
	}
	// The hub may have lost its place in the short log as well. Until it has one again, it gives new watches the old
	// one: the gap that is found there has a second one behind it, with the change that follows.
	head, err := w.store.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.until(func() bool { return w.hub.Position().Covers(head) })
	before := w.lines()
	last := before[len(before)-1]
	core, logged := observer.New(zap.ErrorLevel)
	w.log = zap.New(core)
	_, stop = w.run(&audit.File{Path: w.path})
	defer stop()
	w.until(func() bool {
		lines := w.lines()
		return lines[len(lines)-1].Event == audit.Gap
	})
	said := logged.FilterMessageSnippet("the audit log lacks changes: those after its last line").All()
	if len(said) == 0 {
		t.Fatalf("the log has %v", logged.All())
	}
	fields := said[0].ContextMap()
	if at, _ := fields["lastLine"].(time.Time); !at.Equal(last.Time) || fields["after"] != last.Position {
		t.Errorf("the last line is %+v, and the log has %v", last, fields)
	}
	w.put("Network", "after", "")
	if got := w.wait(1); got[len(got)-1].Name != "after" {
		t.Errorf("%+v", got)
	}
}

func TestAudit_AFileThatWasRenamedBeforeTheNewOneHadALineIsContinued(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, path string){
		"renamed":   func(*testing.T, string) {},
		"new":       func(t *testing.T, path string) { write(t, path, "") },
		"cut":       func(t *testing.T, path string) { write(t, path, `{"time"`) },
		"with dash": func(t *testing.T, path string) { rename(t, path+".1", path+"-20260101") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, memory.Config{})
			_, stop := w.run(&audit.File{Path: w.path})
			w.put("Network", "a", "")
			w.wait(1)
			stop()
			rename(t, w.path, w.path+".1")
			then(t, w.path)
			w.put("Network", "meanwhile", "")
			_, stop = w.run(&audit.File{Path: w.path})
			defer stop()
			w.until(func() bool { lines := w.lines(); return lines[len(lines)-1].Name == "meanwhile" })
		})
	}
}

// TestAudit_ZerosAtTheEndAreRemoved has the end that some file systems leave after a crash.
func TestAudit_ZerosAtTheEndAreRemoved(t *testing.T) {
	for _, cut := range []string{"", `{"time":`} {
		for _, zeros := range []int{10, 1 << 20, 5<<20 + 1} {
			w := newWorld(t, memory.Config{})
			_, stop := w.run(&audit.File{Path: w.path})
			w.put("Network", "a", "")
			w.wait(1)
			stop()
			text, err := os.ReadFile(w.path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, w.path, string(text)+cut+strings.Repeat("\x00", zeros))
			w.put("Network", "meanwhile", "")
			_, stop = w.run(&audit.File{Path: w.path})
			if got := w.wait(2); got[0].Name != "a" || got[1].Name != "meanwhile" || len(got) != 2 {
				t.Errorf("after %q and %d zeros: %+v", cut, zeros, got)
			}
			stop()
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestAudit_ANewFileSaysAtOnceWhereItBegins(t *testing.T) {
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path})
	defer stop()
	w.put("Network", "a", "")
	w.wait(1)
	rename(t, w.path, w.path+".1")
	l.Reopen(t.Context())
	lines := w.lines()
	if last := lines[len(lines)-1]; last.Event != audit.Opened || last.Position != lines[1].Position {
		t.Errorf("%+v", lines)
	}
}

func TestAudit_AFileThatIsTruncatedGoesOn(t *testing.T) {
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path})
	defer stop()
	w.put("Network", "a", "")
	w.wait(1)
	if err := os.Truncate(w.path, 0); err != nil {
		t.Fatal(err)
	}
	w.put("Network", "b", "")
	w.wait(1)
	if lines := w.lines(); len(lines) != 2 || lines[0].Event != audit.Opened || lines[1].Name != "b" {
		t.Errorf("%+v", lines)
	}
}

func TestAudit_TheTargetOfASymlinkIsRenamed(t *testing.T) {
	w := newWorld(t, memory.Config{})
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, w.path); err != nil {
		t.Fatal(err)
	}
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	defer stop()
	w.put("Network", "a", "")
	w.until(func() bool { renamed, _ := filepath.Glob(target + ".*"); return len(renamed) > 0 })
	if info, err := os.Lstat(w.path); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAudit_AFileThatCannotBeRenamedGoesOn(t *testing.T) {
	w := newWorld(t, memory.Config{})
	w.path = filepath.Join(t.TempDir(), strings.Repeat("a", 250)) // too long for a time
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	defer stop()
	for i := range 3 {
		w.put("Network", fmt.Sprint("n", i), "")
	}
	w.wait(3)
}

func TestAudit_ATargetThatTakesNoLinesHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.Config{})
		unread, to := io.Pipe()
		l, err := audit.Open(t.Context(), audit.Config{Hub: w.hub, To: &audit.File{Out: to}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		l.Refuse(t.Context(), &failure.Error{Code: failure.CodeUnauthenticated})
		if err := l.Reveal(t.Context(), backend.Key{Kind: "Secret", Namespace: "default", Name: "s"}); err == nil {
			t.Error("a secret is revealed without a line")
		}
		for i := range 3 {
			w.put("Network", fmt.Sprint("n", i), "")
		}
		ended, end := context.WithCancel(t.Context())
		synctest.Wait()
		if n := l.Behind(); n != 3 {
			t.Errorf("%d changes have no line, want 3", n)
		}
		end()
		if err := l.Run(ended); err != nil {
			t.Error(err)
		}
		_ = unread.Close() // the write that hangs ends
	})
}

func TestAudit_AFileThatIsNoAuditLogIsRefused(t *testing.T) {
	if _, err := audit.Open(t.Context(), audit.Config{To: &audit.File{Path: os.DevNull}}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
	for _, text := range []string{"hello\n", "{}\n{\n", `{"position":"x"}` + "\n"} {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Open(t.Context(), audit.Config{To: &audit.File{Path: path}}); err == nil || !strings.Contains(err.Error(), "audit") && !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAudit_OneProcessWritesAFile(t *testing.T) {
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path})
	defer stop()
	w.until(func() bool { return len(w.lines()) > 0 })
	l.Reopen(t.Context()) // nobody has renamed it
	w.put("Network", "a", "")
	w.wait(1)
	if _, err := audit.Open(t.Context(), audit.Config{To: &audit.File{Path: w.path}}); err == nil || !strings.Contains(err.Error(), "another process writes it") {
		t.Errorf("a second writer: %v", err)
	}
}
