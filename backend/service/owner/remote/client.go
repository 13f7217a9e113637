package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// Describe implements [owner.Service].
func (c *Client) Describe(ctx context.Context) (owner.Description, error) {
	out, err := c.describe.ask(ctx, c, &pb.DescribeRequest{})
	if err != nil {
		return owner.Description{}, err
	}
	d, err := readDescription(out)
	if err != nil {
		return owner.Description{}, c.failed("Describe", err)
	}
	if d.Service == "" {
		d.Service = c.cfg.Name
	}
	return d, nil
}

// List implements [owner.Service].
func (c *Client) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	in := &pb.ListRequest{Kind: kind, PageToken: token, PageSize: int32(min(size, math.MaxInt32))}
	out, err := c.list.ask(ctx, c, in)
	if err != nil {
		return owner.Page{}, err
	}
	page, err := readPage(in, out)
	if err != nil {
		return owner.Page{}, c.failed("List", err)
	}
	return page, nil
}

// Get implements [owner.Service].
func (c *Client) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	switch n := len(keys); {
	case n == 0:
		return nil, nil
	case n > owner.MaxKeys:
		return nil, c.notSent("Get", fmt.Errorf("%d keys were asked for; at most %d are accepted", n, owner.MaxKeys))
	}
	out, err := c.get.ask(ctx, c, &pb.GetRequest{Keys: keysOf(keys)})
	if err != nil {
		return nil, err
	}
	got, err := readGot(keys, out)
	if err != nil {
		return nil, c.failed("Get", err)
	}
	return got, nil
}

// Changes implements [owner.Service]. It needs no slot and ignores the circuit breaker, because the call waits most of
// the time and there is only one such call at a time.
func (c *Client) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	ms := min(max(wait.Milliseconds(), 0), math.MaxInt32)
	in := &pb.ChangesRequest{Position: position, WaitMs: int32(ms)}
	out, err := c.changes.send(ctx, c, time.Duration(ms)*time.Millisecond+c.cfg.Timeout, in)
	if err != nil {
		return owner.Changes{}, err
	}
	changes, err := readChanges(out)
	if err != nil {
		return owner.Changes{}, c.failed("Changes", err)
	}
	return changes, nil
}

// Write implements [owner.Service]. If the resource has a number that the contract cannot express, the outcome is
// Invalid, and the service is not called.
func (c *Client) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	in, err := writeOf(w)
	var inexact *inexactError
	if errors.As(err, &inexact) {
		return inexact.answer(), nil
	}
	if err != nil {
		return owner.Answer{}, c.notSent("Write", err)
	}
	out, err := c.write.ask(ctx, c, in)
	if err != nil {
		return owner.Answer{}, err
	}
	answer, err := readAnswer(w.Resource.Key, out)
	if err == nil && answer.Outcome == owner.Waits {
		err = errors.New("the outcome is WAITS, which only a delete can have")
	}
	if err != nil {
		return owner.Answer{}, c.failed("Write", err)
	}
	return answer, nil
}

// Delete implements [owner.Service].
func (c *Client) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	in := &pb.DeleteRequest{Key: keyOf(d.Key), IfTag: d.IfTag, IfUid: d.IfUID, DryRun: d.DryRun}
	out, err := c.remove.ask(ctx, c, in)
	if err != nil {
		return owner.Answer{}, err
	}
	answer, err := readAnswer(d.Key, out)
	if err == nil && answer.Outcome == owner.Exists {
		err = errors.New("the outcome is EXISTS, which only a write can have")
	}
	if err != nil {
		return owner.Answer{}, c.failed("Delete", err)
	}
	return answer, nil
}
