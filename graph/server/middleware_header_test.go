package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/server"
)

// TestAnswersHaveTheirHeadersWhateverTheirLength on the wire: those of short answers are
// set by net/http in part.
func TestAnswersHaveTheirHeadersWhateverTheirLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{})
		c := g.dial()
		for range 2 { // values that answers share stay as they are
			for _, aliases := range []int{1, 60, 99} { // some tens of bytes, and more than two and three thousand
				var query strings.Builder
				for i := range aliases {
					_, _ = fmt.Fprintf(&query, "alias_of_the_name_of_the_type%02d: __typename ", i)
				}
				body := request("{ "+query.String()+"}", nil)
				_, _ = fmt.Fprintf(c, strings.TrimSuffix(head, "\r\n")+"X-Request-Id: mine\r\nTraceparent: "+givenSampled+"\r\n\r\n%s", len(body), body)
				res, text := answer(t, c)
				want := http.Header{
					"Cache-Control": {"no-store"}, "Content-Length": {fmt.Sprint(len(text))}, "Content-Type": {"application/json; charset=utf-8"}, "Date": res.Header["Date"],
					"Vary": {"Accept", "Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"}, "X-Request-Id": {"mine"}, "X-Trace-Id": {givenTrace},
				}
				if diff := cmp.Diff(want, res.Header); diff != "" || res.Header["Date"] == nil {
					t.Errorf("%d bytes: %s", len(text), diff)
				}
			}
		}
		_ = c.Close()
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
}
