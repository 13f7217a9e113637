package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/server"
)

// hurriedAnswer is an answer that records whether the request got a deadline.
type hurriedAnswer struct {
	*httptest.ResponseRecorder
	hurried chan struct{}
}

func (a *hurriedAnswer) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		close(a.hurried)
	}
	return nil
}

func (a *hurriedAnswer) SetWriteDeadline(time.Time) error { return nil }

func TestServeMethods_ARequestThatDoesNotArriveDelaysNoEnd(t *testing.T) {
	for name, path := range map[string]string{
		"a call":   "/sluice.kinds.v1.ShelfService/GetShelf",
		"a stream": "/sluice.kinds.v1.ShelfService/WatchShelves",
		"health":   "/grpc.health.v1.Health/Check",
	} {
		t.Run(name, func(t *testing.T) {
			m := newMethods(t, server.Config{})
			answer := &hurriedAnswer{ResponseRecorder: httptest.NewRecorder(), hurried: make(chan struct{})}
			reading := make(chan struct{})
			begun := sync.OnceFunc(func() { close(reading) })
			body := readerFunc(func([]byte) (int, error) {
				begun()
				<-answer.hurried
				return 0, os.ErrDeadlineExceeded
			})
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
			req.Host = "localhost"
			req.Header.Set("Content-Type", "application/grpc")
			req.Header.Set("Te", "trailers")
			req.Header.Set("Authorization", "Bearer "+m.token)
			var served sync.WaitGroup
			served.Go(func() { m.server.MethodsHandler().ServeHTTP(answer, req) })
			<-reading
			m.shutDown()
			served.Wait()
			if name == "health" { // package connect reads the request
				return
			}
			res := answer.Result()
			_ = res.Body.Close()
			status, message := res.Trailer.Get("Grpc-Status"), res.Trailer.Get("Grpc-Message")
			if status != "14" || !strings.Contains(message, "shutting down") {
				t.Errorf("%s: %s", status, message)
			}
		})
	}
}
