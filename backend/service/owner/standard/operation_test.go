package standard

import (
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend/service/owner"
)

func TestPollsAgain_IfThePollWasNotSentOrTheServiceIsBusy(t *testing.T) {
	for _, one := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("foos: %w", owner.ErrNotSent), true},
		{connect.NewWireError(connect.CodeUnavailable, errors.New("x")), true},
		{connect.NewWireError(connect.CodeNotFound, errors.New("x")), false},
		{fmt.Errorf("foos: %w", owner.ErrUnimplemented), false},
		{errors.New("lost"), false},
	} {
		if is := pollsAgain(one.err); is != one.want {
			t.Errorf("%v: %v", one.err, is)
		}
	}
}
