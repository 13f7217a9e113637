package main

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"time"
)

// maxRequest is the maximum size of the body of a request in bytes.
const maxRequest = 1 << 20

// request is the body of a request. Each route uses some of the fields.
type request struct {
	Owner      string         `json:"owner"`
	Uses       []string       `json:"uses"`
	Properties map[string]any `json:"properties"`
	Filter     map[string]any `json:"filter"`
}

// routes returns the handler of the API. The answer of each route is an object or a list of objects.
func routes(s *store) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request, request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var in request
			if r.Method == http.MethodPost || r.Method == http.MethodPut {
				if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
					answer(w, http.StatusBadRequest, problem{err.Error()})
					return
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.Context().Err() != nil {
				return // nobody waits for it any more
			}
			out, err := any(nil), s.progress()
			if err == nil {
				out, err = do(r, in)
			}
			if err != nil {
				answer(w, status(err), problem{err.Error()})
				return
			}
			answer(w, http.StatusOK, out)
		})
	}
	handle("GET /v1/objects", func(*http.Request, request) (any, error) {
		return s.find(func(*object) bool { return true }), nil
	})
	handle("POST /v1/{kind}", func(r *http.Request, in request) (any, error) {
		return s.create(object{Kind: r.PathValue("kind"), Owner: in.Owner, Uses: in.Uses, Properties: in.Properties})
	})
	handle("POST /v1/{kind}/search", func(r *http.Request, in request) (any, error) {
		return s.find(func(o *object) bool {
			return o.Kind == r.PathValue("kind") && (in.Owner == "" || o.Owner == in.Owner) && matches(in.Filter, o.Properties)
		}), nil
	})
	handle("GET /v1/{kind}/{id}", func(r *http.Request, _ request) (any, error) {
		return s.get(r.PathValue("kind"), r.PathValue("id"))
	})
	handle("PUT /v1/{kind}/{id}", func(r *http.Request, in request) (any, error) {
		return s.replace(r.PathValue("kind"), r.PathValue("id"), in.Uses, in.Properties)
	})
	handle("DELETE /v1/{kind}/{id}", func(r *http.Request, _ request) (any, error) {
		return s.remove(r.PathValue("kind"), r.PathValue("id"))
	})
	return mux
}

// problem is the body of an answer with an error.
type problem struct {
	Error string `json:"error"`
}

func status(err error) int {
	switch {
	case errors.Is(err, errNotFound):
		return http.StatusNotFound
	case errors.Is(err, errOwned), errors.Is(err, errInUse):
		return http.StatusConflict
	case errors.Is(err, errRefused):
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// matches reports whether properties match a filter. The names tags, tagsAny, notTags and notTagsAny in a filter test
// the tags of an object; see the import queries of the catalogue. Other properties must be equal.
func matches(filter, properties map[string]any) bool {
	has, _ := properties["tags"].([]any)
	for name, want := range filter {
		tags, _ := want.([]any)
		found := 0
		for _, tag := range tags {
			if slices.Contains(has, tag) {
				found++
			}
		}
		matched := false
		switch name {
		case "tags":
			matched = found == len(tags)
		case "tagsAny":
			matched = found > 0
		case "notTags":
			matched = found < len(tags)
		case "notTagsAny":
			matched = found == 0
		default:
			matched = reflect.DeepEqual(properties[name], want) // both were decoded from JSON
		}
		if !matched {
			return false
		}
	}
	return true
}

// unreliable returns a handler that refuses requests without the token, delays other requests, and makes some of them
// fail, half of these after they were executed.
func unreliable(cfg config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cfg.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+cfg.token)) != 1 {
			answer(w, http.StatusUnauthorized, problem{"the token is not known"})
			return
		}
		// Only after the body was read does net/http notice that the client has disconnected.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			answer(w, http.StatusBadRequest, problem{err.Error()})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if cfg.latency > 0 {
			select {
			case <-r.Context().Done(): // the caller has left: nothing is done
				return
			case <-time.After(rand.N(cfg.latency)):
			}
		}
		if rand.Float64() >= cfg.faults {
			next.ServeHTTP(w, r)
			return
		}
		if rand.N(2) == 0 { // it is done, but nobody gets the answer
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		answer(w, http.StatusServiceUnavailable, problem{"the cloud is busy"})
	})
}
