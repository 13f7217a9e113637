package write

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
)

// maxWaits is the maximum number of lines about waiting resources.
const maxWaits = 10

// waits collects what the resources of documents wait for. It is printed at the end, because a document may wait for a
// document that is applied later.
type waits struct {
	// collect reports whether warnings about waiting are kept and printed at the end.
	collect bool
	all     []*waited
}

// waited is something for which several resources of a namespace may wait.
type waited struct {
	namespace, message string
	by                 []string
}

// add records that a resource waits. message is the warning of the gateway.
func (w *waits) add(waiting resource.Key, message string) {
	i := slices.IndexFunc(w.all, func(one *waited) bool {
		return one.namespace == waiting.Namespace && one.message == message
	})
	if i < 0 {
		i, w.all = len(w.all), append(w.all, &waited{namespace: waiting.Namespace, message: message})
	}
	w.all[i].by = append(w.all[i].by, waiting.String())
}

// print writes one line for each message in w.all, at most maxWaits lines. The message that concerns the most resources
// comes first. Messages about resources that were stored in the meantime are left out.
func (w *waits) print(to io.Writer, stored []resource.Key) {
	left := slices.DeleteFunc(w.all, func(one *waited) bool {
		return slices.ContainsFunc(stored, func(k resource.Key) bool {
			return (k.Namespace == "" || k.Namespace == one.namespace) &&
				strings.Contains(one.message, " "+k.Kind+"/"+k.Name+" to be created")
		})
	})
	slices.SortStableFunc(left, func(a, b *waited) int { return cmp.Compare(len(b.by), len(a.by)) })
	for i, one := range left {
		if i == maxWaits {
			_, _ = fmt.Fprintf(to, "and so on for %d others; sluice get -o wide says what each resource waits for\n",
				len(left)-i)
			return
		}
		_, _ = fmt.Fprintf(to, "%s: %s\n",
			output.Printable(one.message), output.Printable(output.Some(one.by, len(one.by))))
	}
}
