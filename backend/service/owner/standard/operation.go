package standard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/internal/wait"
)

// The parameters of polling an operation.
const (
	minPollPause = 100 * time.Millisecond
	maxPollPause = 2 * time.Second
	// maxOperation is the maximum time for which an operation is polled. maxPolls is the maximum number of polls.
	maxOperation = 25 * time.Second
	maxPolls     = 200
)

func newMessage(d protoreflect.MessageDescriptor) protoreflect.Message {
	return dynamicpb.NewMessage(d).ProtoReflect()
}

// send sends the request of a write or delete. It returns the resource in the answer, or nil if there is none, and the
// outcome.
func (c *Client) send(
	ctx context.Context, p *plan, m *method, key backend.Key, request protoreflect.Message,
) (protoreflect.Message, owner.Answer, error) {
	in, ok := request.Interface().(*dynamicpb.Message)
	if !ok {
		return nil, owner.Answer{}, errors.New("a request is of no dynamic type")
	}
	answer, err := m.ask(ctx, in)
	if err != nil {
		decided, err := p.interpretError(m, err)
		return nil, decided, err
	}
	done := owner.Answer{Outcome: owner.Done}
	switch {
	case m.operation:
		decided, err := c.await(ctx, p, m, answer)
		return nil, decided, err
	case m.itself:
		return answer, done, nil
	case len(m.answerAt) > 0 && m.answerAt.has(answer):
		return m.answerAt.get(answer).Message(), done, nil
	}
	return nil, done, nil
}

// await polls an operation until it is done, for at most maxOperation, and returns the decision.
func (c *Client) await(
	ctx context.Context, p *plan, m *method, operation protoreflect.Message,
) (owner.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, maxOperation)
	defer cancel()
	name, _ := valueAt(operation, "name")
	backoff := wait.Backoff{Least: minPollPause, Most: maxPollPause}
	for range maxPolls {
		if done, is := valueAt(operation, "done"); is && done.Bool() {
			return p.operationDone(m, operation)
		}
		if !name.IsValid() {
			return owner.Answer{}, fmt.Errorf("service %s: %s: the operation has no name", c.name, m.Name())
		}
		if !backoff.Wait(ctx) {
			break
		}
		request := p.operation.request()
		p.operation.keyAt.setText(request, name.String())
		next, err := p.operation.ask(ctx, request)
		switch {
		case err == nil:
			operation = next
		case !pollsAgain(err): // do not wrap err, which is only about the poll: the service has accepted the write
			return owner.Answer{}, fmt.Errorf("service %s: %s: the operation %s cannot be polled: %v",
				c.name, m.Name(), shortText(name.String()), err)
		}
	}
	return owner.Answer{}, fmt.Errorf("service %s: %s: the operation %s is not done after %s",
		c.name, m.Name(), shortText(name.String()), maxOperation)
}

// pollsAgain reports whether an operation is polled again after a poll has failed.
func pollsAgain(err error) bool {
	if errors.Is(err, owner.ErrNotSent) {
		return true
	}
	code := connect.CodeOf(err)
	return connect.IsWireError(err) && (code == connect.CodeUnavailable || code == connect.CodeResourceExhausted)
}

// operationDone returns the decision that a completed operation contains.
func (p *plan) operationDone(m *method, operation protoreflect.Message) (owner.Answer, error) {
	failed, is := valueAt(operation, "error")
	if !is {
		return owner.Answer{Outcome: owner.Done}, nil
	}
	code, _ := valueAt(failed.Message(), "code")
	message, _ := valueAt(failed.Message(), "message")
	n, ok := code.Interface().(int32)
	if !ok || n <= 0 || n > int32(connect.CodeUnauthenticated) {
		n = int32(connect.CodeUnknown)
	}
	said := connect.NewWireError(connect.Code(n), errors.New(message.String()))
	decided, err := p.interpretError(m, said)
	if err != nil { // the operation has ended, so nothing more will come of it
		return owner.Answer{Outcome: owner.Refused, Message: messageOf(said)}, nil
	}
	return decided, nil
}
