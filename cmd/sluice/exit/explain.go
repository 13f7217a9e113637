package exit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// APICode returns the code of an error of the API; empty for other errors.
func APICode(err error) string {
	var api *client.Error
	if errors.As(err, &api) {
		return api.Extensions.Code
	}
	return ""
}

// Explain prints an error. Each error of the API is on a separate line.
func Explain(std terminal.Streams, where string, err error) {
	all := client.Errors{}
	if !errors.As(err, &all) {
		_, _ = fmt.Fprintf(std.Err, "%s: %s\n", output.Printable(where), output.Printable(err.Error()))
		return
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(std.Err, "%s: %s%s\n", output.Printable(where), output.Printable(e.Message), Hint(e))
	}
}

// Hint returns the code of an error, for scripts, and advice if the message of the error has none.
func Hint(e *client.Error) string {
	var parts []string
	if e.Extensions.Code != "" {
		parts = append(parts, output.Printable(e.Extensions.Code))
	}
	switch {
	case e.Extensions.Outcome == "UNKNOWN":
		parts = append(parts, "look with sluice get before you repeat it")
	case e.Extensions.Outcome == "APPLIED":
		parts = append(parts, "the change was made, and its answer could not be given; look with sluice get")
	case e.Extensions.Retryable && !strings.Contains(e.Message, "try again"):
		parts = append(parts, "try again")
	case e.Extensions.Code == "ALREADY_EXISTS" && strings.HasSuffix(e.Message, "you may not read it"): // nor change it
	case e.Extensions.Code == "ALREADY_EXISTS":
		parts = append(parts, "sluice apply replaces it, sluice edit changes it")
	case e.Extensions.Code == "UNREADABLE" && strings.HasSuffix(e.Message, "in a form that this gateway cannot read"):
		parts = append(parts, "sluice get KIND --unreadable says why, sluice apply replaces it")
	case e.Extensions.Code == "UNAUTHENTICATED":
		parts = append(parts, "sluice login, or name a token with --token-file")
	case e.Extensions.Code == "INTERNAL":
		parts = append(parts, "request "+output.Printable(e.Extensions.RequestID)+" in the gateway's log")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// Unauthenticated reports whether the gateway did not accept the credential.
func Unauthenticated(err error) bool { return APICode(err) == "UNAUTHENTICATED" }
