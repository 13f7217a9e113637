package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	stateActive   = "ACTIVE"
	stateDeleting = "DELETING"
)

type object struct {
	ID string `json:"id"`
	// Owner is the uid of the resource for which the object was created. With it the controller finds the object if it
	// crashed before it stored the id.
	Owner string `json:"owner"`
	State string `json:"state"`
	// Uses are the ids of other objects. They must exist before this object is created and until it is removed.
	Uses       []string       `json:"uses"`
	Properties map[string]any `json:"properties"`
}

// request is the body of a request to the cloud.
type request struct {
	Owner      string         `json:"owner,omitempty"`
	Uses       []string       `json:"uses,omitempty"`
	Properties map[string]any `json:"properties,omitempty"`
	Filter     map[string]any `json:"filter,omitempty"`
}

// These errors are permanent: the same request would fail again. Other errors may be temporary.
var (
	errNotThere = errors.New("there is no such object in the cloud")
	errRefused  = errors.New("the cloud refused it")
)

const (
	cloudTimeout = 10 * time.Second
	maxAnswer    = 16 << 20 // bytes
	maxProblem   = 1000     // characters of an error: it goes into a status, which has a maximum
)

// cloud is a client of the API of the cloud.
type cloud struct {
	base  string
	http  *http.Client
	token string
}

func newCloud(base string) *cloud {
	return &cloud{base: base, http: &http.Client{Timeout: cloudTimeout}}
}

// as returns a client of the same cloud with another token.
func (c *cloud) as(token string) *cloud { return &cloud{c.base, c.http, token} }

// get returns an object. If there is none, the error is errNotThere.
func (c *cloud) get(ctx context.Context, kind, id string) (*object, error) {
	var out object
	return &out, c.do(ctx, http.MethodGet, []string{kind, id}, nil, &out)
}

// search returns the objects that match the filter or have the owner in w.
func (c *cloud) search(ctx context.Context, kind string, w request) ([]*object, error) {
	var out []*object
	return out, c.do(ctx, http.MethodPost, []string{kind, "search"}, &w, &out)
}

// owned returns the object that was created for the resource with a uid. If there is none, the error is errNotThere.
func (c *cloud) owned(ctx context.Context, kind, uid string) (*object, error) {
	found, err := c.search(ctx, kind, request{Owner: uid})
	if err == nil && len(found) == 0 {
		err = errNotThere
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (c *cloud) create(ctx context.Context, kind string, w request) (*object, error) {
	var out object
	return &out, c.do(ctx, http.MethodPost, []string{kind}, &w, &out)
}

func (c *cloud) replace(ctx context.Context, kind, id string, w request) (*object, error) {
	var out object
	return &out, c.do(ctx, http.MethodPut, []string{kind, id}, &w, &out)
}

// remove begins to remove an object. The object exists until the cloud has removed it.
func (c *cloud) remove(ctx context.Context, kind, id string) error {
	return c.do(ctx, http.MethodDelete, []string{kind, id}, nil, &object{})
}

func (c *cloud) do(ctx context.Context, method string, path []string, in *request, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	at, err := url.JoinPath(c.base, append([]string{"v1"}, path...)...)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return errors.New("the cloud does not answer") // the same text each time: it is written into the status
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return errors.New("the cloud did not answer to the end")
	}
	if res.StatusCode == http.StatusOK {
		return json.Unmarshal(raw, out)
	}
	var problem struct{ Error string }
	_ = json.Unmarshal(raw, &problem)
	if said := []rune(problem.Error); len(said) > maxProblem {
		problem.Error = string(said[:maxProblem])
	}
	switch res.StatusCode {
	case http.StatusNotFound:
		return errNotThere
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %s", errRefused, problem.Error)
	}
	return fmt.Errorf("the cloud answered %s: %s", res.Status, problem.Error)
}
