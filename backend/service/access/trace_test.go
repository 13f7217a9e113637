package access_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/service/access"
)

func TestParseTrace_AcceptsWhatW3CTraceContextDoes(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for header, want := range map[string]string{
		"00-" + trace:            "00-" + trace,
		"01-" + trace + "-later": "00-" + trace,
		"01-" + trace:            "00-" + trace,
		"01-" + trace + "later":  "",
		"00-" + trace + "-later": "",
		"ff-" + trace:            "",
		"":                       "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"00-" + trace + "\r\nsluice-user: token:admin":            "",
	} {
		if got := access.ParseTrace(header); got != want {
			t.Errorf("%q: %q, not %q", header, got, want)
		}
	}
}
