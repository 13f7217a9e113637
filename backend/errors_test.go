package backend_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
)

func TestFormatErrorf_HasItsTextAlone(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("open: %w", backend.FormatErrorf("the file is damaged: %w", cause))
	if !errors.Is(err, backend.ErrFormat) || !errors.Is(err, cause) || err.Error() != "open: the file is damaged: cause" {
		t.Errorf("%v", err)
	}
}
