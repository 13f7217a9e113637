package rpc_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/rpc"
)

// TestError_FitsInTheTrailersThatClientsAccept has more violations than that, and texts that are long and no UTF-8.
func TestError_FitsInTheTrailersThatClientsAccept(t *testing.T) {
	long := strings.Repeat("x", 100<<10) + "\xff"
	known := &failure.Error{Code: failure.CodeValidationFailed, Message: long, Name: long, Cursor: "c"}
	for range 100 {
		known.Violations = append(known.Violations, failure.Violation{
			Path: "spec." + strings.Repeat("p", 200), Message: "must be one of " + strings.Repeat("v", 300),
		})
	}
	err := rpc.Error(t.Context(), known)
	bytes := len(err.Message())
	violations := 0
	for _, d := range err.Details() {
		bytes += len(d.Bytes())
		value, valueErr := d.Value()
		if valueErr != nil {
			t.Fatal(valueErr)
		}
		switch value := value.(type) {
		case *errdetails.BadRequest:
			violations = len(value.FieldViolations)
		case *errdetails.ErrorInfo:
			if value.Metadata["cursor"] != "c" {
				t.Error(value.Metadata)
			}
		}
	}
	// The details are in base64, and the message is in them and beside them.
	if total := (bytes+len(err.Message()))*4/3 + len(err.Message()); total > 8<<10 {
		t.Error("the error has", total, "bytes")
	}
	if violations < 3 || violations > 10 {
		t.Error("violations:", violations)
	}
	if !utf8.ValidString(err.Message()) {
		t.Error("the message is no UTF-8")
	}
}
