package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatTheCloudSaysFitsIntoAStatus(t *testing.T) {
	answer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": strings.Repeat("é", 100_000)})
	}))
	defer answer.Close()
	c := newCloud(answer.URL)
	defer c.http.CloseIdleConnections()
	_, err := c.get(t.Context(), "networks", "a")
	if n := utf8.RuneCountInString(err.Error()); !errors.Is(err, errRefused) || n < 1000 || n > 1100 {
		t.Errorf("%d characters: %.100v", n, err)
	}
}
