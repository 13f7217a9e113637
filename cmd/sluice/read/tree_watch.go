package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// The shortest and the longest pause after a failed read.
const (
	firstReadPause = 250 * time.Millisecond
	lastReadPause  = 10 * time.Second
)

// watch prints the tree now and after each change, until the user stops it.
func (t *tree) watch(ctx context.Context, id string) error {
	for {
		err := t.follow(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil
		case exit.APICode(err) == "POSITION_EXPIRED":
			continue // changes were missed, so the tree is read again
		}
		return err
	}
}

// follow prints the tree now and after each change. It returns when it may have missed changes. If several changes
// occur while the tree is being read, the tree is read only once more.
func (t *tree) follow(ctx context.Context, id string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, err := t.begin(ctx)
	if err != nil {
		return err
	}
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- t.listen(ctx, events, changed) }()
	var pause time.Duration // 0 unless the tree could not be read
	for {
		found, err := t.read(ctx, id)
		switch {
		case err == nil:
			pause, err = 0, t.show(found)
		case ctx.Err() == nil && temporary(err):
			if pause == 0 {
				_, _ = fmt.Fprintf(t.std.Err, "sluice: the tree cannot be read at present: %s\n",
					output.Printable(err.Error()))
			}
			pause, err = min(max(2*pause, firstReadPause), lastReadPause), nil
		}
		if err != nil {
			stop()
			<-ended
			return err
		}
		again, next := changed, (<-chan time.Time)(nil)
		if pause > 0 { // it is read again then, whether something changes or not
			again, next = nil, time.After(pause)
		}
		select {
		case <-again:
		case <-next:
		case err := <-ended:
			return err
		}
	}
}

// begin returns a request for all changes that may affect the tree. It selects the namespace of the tree, because
// references do not leave it. If there are GLOBAL kinds, it selects all namespaces.
func (t *tree) begin(ctx context.Context) (client.ChangesRequest, error) {
	req := client.ChangesRequest{Namespace: t.Namespace, Lost: exit.ReportLost(t.std)}
	kinds, err := t.client.Kinds(ctx)
	if err != nil {
		return req, err
	}
	if slices.ContainsFunc(kinds, func(k client.Kind) bool { return k.Scope == "GLOBAL" }) {
		req.Namespace = ""
	}
	req.After, err = t.client.Position(ctx, t.Kind, t.Namespace)
	return req, err
}

// listen sends to changed after each change, until the stream ends. It does not wait for a receiver.
func (t *tree) listen(ctx context.Context, req client.ChangesRequest, changed chan<- struct{}) error {
	for _, err := range t.client.Changes(ctx, req) {
		if err != nil {
			return err
		}
		select {
		case changed <- struct{}{}:
		default: // the tree is read after this one too
		}
	}
	return nil
}

// temporary reports whether a failed read may succeed later.
func temporary(err error) bool {
	var e *client.Error
	return errors.As(err, new(*client.UnansweredError)) || errors.As(err, &e) && e.Extensions.Retryable
}
