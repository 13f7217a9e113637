package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// pageSize of List.
const pageSize = 200

// ListRequest describes the resources that List walks.
type ListRequest struct {
	Kind Kind
	// Namespace narrows the list; empty means all.
	Namespace string
	// Selector are tests of labels that must all hold.
	Selector []LabelTest
	// Filter is another condition, in the API's form; nil for none.
	Filter map[string]any
	// Format of the manifests; without one the resources come whole and without them.
	Format Format
	// NamesOnly: neither manifests nor specs are wanted.
	NamesOnly bool
}

// LabelOperator is how a label is tested.
type LabelOperator string

// The operators. LabelIn and LabelNotIn take values; a resource without the label
// is not in any.
const (
	LabelIn     LabelOperator = "in"
	LabelNotIn  LabelOperator = "notIn"
	LabelExists LabelOperator = "exists"
	LabelAbsent LabelOperator = "absent"
)

// LabelTest is a test of the label with a key.
type LabelTest struct {
	Key      string
	Operator LabelOperator
	Values   []string
}

// filter returns the test in the API's form.
func (t LabelTest) filter() map[string]any {
	switch t.Operator {
	case LabelIn, LabelNotIn:
		return map[string]any{"key": t.Key, string(t.Operator): t.Values}
	}
	return map[string]any{"key": t.Key, "isNull": t.Operator == LabelAbsent}
}

// filterOf joins tests of labels and a filter; nil if there is neither.
func filterOf(selector []LabelTest, filter map[string]any) map[string]any {
	if len(selector) == 0 {
		return filter
	}
	labels := make([]map[string]any, len(selector))
	for i, t := range selector {
		labels[i] = t.filter()
	}
	byLabels := map[string]any{"labels": labels}
	if filter == nil {
		return byLabels
	}
	return map[string]any{"and": []any{byLabels, filter}}
}

// UnreadableError says that a list was read to its end, and that the gateway could not read some resources of its
// kind and namespace. Nobody can tell whether these have the labels and values that were asked for.
type UnreadableError struct {
	Kind Kind
	// Count is how many there are.
	Count int
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%d of kind %s cannot be read", e.Count, e.Kind.Name)
}

// List walks resources in the order of their names, page by page. The
// iteration ends at the first error. The last one is an [*UnreadableError] if the list had to leave out resources.
func (c *Client) List(ctx context.Context, req ListRequest) iter.Seq2[*Resource, error] {
	return func(yield func(*Resource, error) bool) {
		k := req.Kind
		if err := k.offers("LIST"); err != nil {
			yield(nil, err)
			return
		}
		vars := k.within(req.Namespace, parts(req.Format, req.NamesOnly))
		vars["first"], vars["filter"] = pageSize, filterOf(req.Selector, req.Filter)
		for {
			var out struct {
				List struct {
					Nodes    []*Resource
					PageInfo struct {
						HasNextPage bool
						EndCursor   *string
					}
					UnreadableCount int
				}
			}
			err := c.Do(ctx, k.document(listTemplate), vars, &out)
			if size := vars["first"].(int); tooLarge(err) && size > 1 {
				vars["first"] = size / 2 // the resources are large: fewer at a time
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range out.List.Nodes {
				if !yield(r, nil) {
					return
				}
			}
			if !out.List.PageInfo.HasNextPage || out.List.PageInfo.EndCursor == nil {
				if n := out.List.UnreadableCount; n > 0 {
					yield(nil, &UnreadableError{Kind: k, Count: n})
				}
				return
			}
			vars["after"] = *out.List.PageInfo.EndCursor
		}
	}
}

// tooLarge reports whether an answer is larger than the client reads, or than the gateway sends.
func tooLarge(err error) bool {
	var told *Error
	return errors.Is(err, errTooLarge) || errors.As(err, &told) && told.Extensions.Code == "LIMIT_EXCEEDED" &&
		slices.Contains([]string{"limit-answer", "limit-objects", "limit-held", "limit-steps"}, told.Extensions.Setting)
}
