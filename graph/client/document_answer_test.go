package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

func TestDocument_AnAnswerThatIsNotJSONIsSaidSo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "<html>")
	}))
	defer s.Close()
	c, err := client.New(client.Config{Server: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DescribedKinds(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), " answered is cut off, or not JSON") {
		t.Errorf("%v", err)
	}
}
