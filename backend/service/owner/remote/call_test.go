package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// unknown reports whether an error leaves open whether the service did what it was asked.
func unknown(err error) bool {
	return err != nil && !errors.Is(err, owner.ErrNotSent) && !errors.Is(err, owner.ErrUnimplemented)
}

func TestCall_ToNobodyWasNotSent(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		client := connect(t, remote.Config{Address: "http://127.0.0.1:1", Protocol: protocol}) // nobody listens there
		_, err := client.Delete(t.Context(), owner.Delete{Key: team("a")})
		if !errors.Is(err, owner.ErrNotSent) {
			t.Errorf("%v", err)
		}
		_, err = client.Changes(t.Context(), "", 0)
		if !errors.Is(err, owner.ErrNotSent) || !strings.HasPrefix(err.Error(), "service teams: Changes: ") {
			t.Errorf("%v", err)
		}
	})
}

func TestCall_ThatIsNotAnsweredIsUnknown(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"the connection ends": hangUp,
		"half an answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"outcome":"DONE"`)
		},
		"not JSON": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "Traceback")
		},
		"another content type": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") },
		"an error of a proxy": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no upstream", http.StatusBadGateway)
		},
		"an error of the service": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"unavailable","message":"the database\nis away"}`)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := connect(t, remote.Config{Address: serve(t, handler)})
			_, err := client.Delete(t.Context(), owner.Delete{Key: team("a")})
			if !unknown(err) || !strings.HasPrefix(err.Error(), "service teams: Delete: ") {
				t.Fatalf("%v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("it has several lines: %v", err)
			}
		})
	}
}

func TestCall_ThatIsNotAnsweredInTimeIsUnknown(t *testing.T) {
	var reached atomic.Bool
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Store(true)
		ignore(w, r)
	}))
	timeout := 50 * time.Millisecond
	for !reached.Load() { // on a busy machine, the time may be over before the service is reached
		timeout *= 2
		client := connect(t, remote.Config{Address: address, Timeout: timeout})
		_, err := client.Delete(t.Context(), owner.Delete{Key: team("a")})
		if err == nil || reached.Load() && !unknown(err) {
			t.Fatalf("%v", err)
		}
	}
}

func TestCall_WaitsForChangesLongerThanForOtherCalls(t *testing.T) {
	var deadline atomic.Value
	h := func(w http.ResponseWriter, r *http.Request) {
		deadline.Store(r.Header.Get("Connect-Timeout-Ms"))
		replying(`{"position":"1"}`).ServeHTTP(w, r)
	}
	client := connect(t, remote.Config{Address: serve(t, http.HandlerFunc(h)), Timeout: 40 * time.Second})
	if _, err := client.Changes(t.Context(), "0", 50*time.Second); err != nil {
		t.Fatal(err)
	}
	if ms, _ := deadline.Load().(string); len(ms) != 5 || ms < "60000" || ms > "90000" {
		t.Errorf("the service is told to answer in %s ms", ms)
	}
}

func TestCall_WaitsForASlotForAWhile(t *testing.T) {
	service := newTeams()
	entered := make(chan struct{})
	leave := make(chan struct{})
	service.SetHooks(ownertest.Hooks{Before: func(context.Context, ownertest.Call) error {
		entered <- struct{}{}
		<-leave
		return nil
	}})
	address := serve(t, remote.Handler(service))
	client := connect(t, remote.Config{Address: address, InFlight: 2, SlotWait: time.Nanosecond})
	done := make(chan error)
	for range 2 {
		go func() {
			_, err := client.Describe(t.Context())
			done <- err
		}()
		<-entered
	}
	if _, err := client.Describe(t.Context()); !errors.Is(err, owner.ErrNotSent) {
		t.Errorf("the third call: %v", err)
	}
	close(leave)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	go func() { <-entered }()
	if _, err := client.Describe(t.Context()); err != nil {
		t.Errorf("a slot was not given back: %v", err)
	}
}

func TestCall_IsNotSentAfterManyFailures(t *testing.T) {
	var calls atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		hangUp(w, r)
	}
	client := connect(t, remote.Config{Address: serve(t, http.HandlerFunc(h))})
	for i := 1; ; i++ {
		_, err := client.Delete(t.Context(), owner.Delete{Key: team("a")})
		if errors.Is(err, owner.ErrNotSent) {
			break
		}
		if !unknown(err) || i > 1000 {
			t.Fatalf("after %d calls: %v", i, err)
		}
	}
	if n := calls.Load(); n < 5 {
		t.Errorf("not sent after %d failures", n)
	}
	if _, err := client.Changes(t.Context(), "", 0); !unknown(err) {
		t.Errorf("Changes is held back: %v", err)
	}
}

func TestCall_IsSentAgainOnceTheServiceIsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	var back atomic.Bool
	service := remote.Handler(newTeams())
	h := func(w http.ResponseWriter, r *http.Request) {
		if !back.Load() {
			hangUp(w, r)
		}
		service.ServeHTTP(w, r)
	}
	client := connect(t, remote.Config{Address: serve(t, http.HandlerFunc(h))})
	for {
		if _, err := client.Describe(t.Context()); errors.Is(err, owner.ErrNotSent) {
			break
		}
	}
	back.Store(true)
	begin := time.Now()
	for {
		_, err := client.Describe(t.Context())
		if err == nil {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestCall_DecisionsAndImpatientCallersAreNoFailures(t *testing.T) {
	entered := make(chan struct{})
	h := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "Describe"):
			replying(`{}`).ServeHTTP(w, r)
		case strings.HasSuffix(r.URL.Path, "Write"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(map[string]string{"code": "unavailable"})
		default:
			entered <- struct{}{}
			ignore(w, r)
		}
	}
	client := connect(t, remote.Config{Address: serve(t, http.HandlerFunc(h))})
	for range 20 {
		_, err := client.Write(t.Context(), owner.Write{Resource: owner.Resource{Key: team("a"), Spec: []byte(`{}`)}})
		if !unknown(err) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		_, err = client.Delete(ctx, owner.Delete{Key: team("a")})
		if !unknown(err) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := client.Describe(t.Context()); err != nil {
		t.Error(err)
	}
}
