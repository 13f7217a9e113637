package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/state"
)

// secretStore is a store with a sensitive record.
type secretStore struct{ *memory.Store }

func (secretStore) Ready(context.Context) error { return nil }
func (secretStore) Unreadable() uint64          { return 0 }

func newSecretStore(t *testing.T) secretStore {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	_, err = store.Apply(t.Context(), backend.Batch{
		RequestID: "r", Deadline: time.Now().Add(time.Minute),
		Actions: []backend.Action{{
			Key: backend.Key{Kind: "Secret", Namespace: "default", Name: "s"}.Sensitive(), Op: backend.OpPut,
			Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{"data":"planted"}`))},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return secretStore{store}
}

func TestExports_AnswerWithSecretsAsTheyMayBeShown(t *testing.T) {
	keys, err := keyring.New(keyring.Key{ID: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		query  string
		plain  bool
		keys   *keyring.Keyring
		status int
		says   string
	}{
		"sealed":                          {"", false, keys, 200, "sealed"},
		"none":                            {"?secrets=none", false, nil, 200, "none"},
		"plain over the admin socket":     {"?secrets=plain", true, nil, 200, "plain"},
		"plain over the network":          {"?secrets=plain", false, keys, 400, "plain is for the admin socket"},
		"something else":                  {"?secrets=all", true, keys, 400, "accepted are sealed, none and"},
		"sealed by a gateway without key": {"", true, nil, 409, "give it encryption-keys-file"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExports(shared{store: newSecretStore(t), keys: c.keys, measures: newMeasures()}, zap.NewNop())
			w := httptest.NewRecorder()
			e.handler(c.plain).ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExportPath+c.query, nil))
			said := w.Body.String()
			if w.Code == http.StatusOK {
				r, err := state.NewReader(bytes.NewReader(w.Body.Bytes()))
				if err != nil {
					t.Fatal(err)
				}
				said = string(r.Header().Secrets)
			}
			if w.Code != c.status || !strings.Contains(said, c.says) {
				t.Errorf("%d %s", w.Code, said)
			}
			if len(e.running) != 0 {
				t.Error("it counts as running")
			}
		})
	}
}

func TestExports_AreFewAtATime(t *testing.T) {
	e := newExports(shared{store: newSecretStore(t), measures: newMeasures()}, zap.NewNop())
	for range maxExports {
		e.running <- struct{}{}
	}
	w := httptest.NewRecorder()
	e.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExportPath, nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "2 exports are under way") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// timedAnswer records the deadlines of its connection.
type timedAnswer struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (a *timedAnswer) SetReadDeadline(at time.Time) error {
	a.read = append(a.read, at)
	return nil
}

func (a *timedAnswer) SetWriteDeadline(at time.Time) error {
	a.write = append(a.write, at)
	return nil
}

func TestExports_MayTakeLongerThanTheDeadlinesOfAServer(t *testing.T) {
	e := newExports(shared{store: newSecretStore(t), measures: newMeasures()}, zap.NewNop())
	w := &timedAnswer{ResponseRecorder: httptest.NewRecorder()}
	e.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExportPath+"?secrets=plain", nil))
	if len(w.read) != 1 || !w.read[0].IsZero() {
		t.Errorf("the deadline for reading is %v", w.read)
	}
	if len(w.write) < 2 || !w.write[0].After(time.Now()) {
		t.Errorf("the deadlines for writing are %v", w.write)
	}
}

// brokenAnswer is an answer whose client goes away.
type brokenAnswer struct {
	*httptest.ResponseRecorder
	left int
}

func (b *brokenAnswer) Write(p []byte) (int, error) {
	b.left--
	if b.left < 0 {
		return 0, http.ErrHandlerTimeout
	}
	return b.ResponseRecorder.Write(p)
}

func TestExports_BreakOffInsteadOfEndingEarly(t *testing.T) {
	e := newExports(shared{store: newSecretStore(t), measures: newMeasures()}, zap.NewNop())
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("%v", p)
		}
	}()
	w := &brokenAnswer{ResponseRecorder: httptest.NewRecorder(), left: 1}
	e.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExportPath+"?secrets=plain", nil))
}

// stalledAnswer is an answer whose client takes nothing: a write waits for the deadline of the connection.
type stalledAnswer struct {
	*httptest.ResponseRecorder
	writing  chan struct{} // closed by the first write
	deadline chan struct{} // closed when the deadline has passed
}

func (a *stalledAnswer) Write([]byte) (int, error) {
	close(a.writing)
	<-a.deadline
	return 0, os.ErrDeadlineExceeded
}

func (a *stalledAnswer) SetWriteDeadline(at time.Time) error {
	if !at.After(time.Now()) {
		close(a.deadline)
	}
	return nil
}

func TestExports_EndAtOnceWhenTheGatewayStops(t *testing.T) {
	e := newExports(shared{store: newSecretStore(t), measures: newMeasures()}, zap.NewNop())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &stalledAnswer{
		ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), deadline: make(chan struct{}),
	}
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		r := httptest.NewRequest(http.MethodGet, ExportPath+"?secrets=plain", nil).WithContext(ctx)
		e.handler(true).ServeHTTP(w, r)
	}()
	<-w.writing
	stop()
	if p := <-ended; p != http.ErrAbortHandler {
		t.Errorf("the answer ends with %v, want one that breaks off", p)
	}
	if len(e.running) != 0 {
		t.Error("it counts as running")
	}
}

func TestExports_ARefusalHasTheIDOfTheRequest(t *testing.T) {
	e := newExports(shared{store: newSecretStore(t), measures: newMeasures()}, zap.NewNop())
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, ExportPath+"?secrets=all", nil)
	r = r.WithContext(access.WithCaller(t.Context(), access.Caller{Request: "request-1"}))
	e.handler(false).ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"requestId":"request-1"`) {
		t.Error(w.Body)
	}
}
