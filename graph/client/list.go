package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// pageSize is the number of resources that List requests at a time.
const pageSize = 200

// ListRequest selects the resources that List returns.
type ListRequest struct {
	Kind Kind
	// Namespace limits the list; empty means all.
	Namespace string
	// Selector limits the list to resources for which all tests hold.
	Selector []LabelTest
	// Filter also limits the list, by a filter in the form of the API; nil for no filter.
	Filter map[string]any
	// Format is the format of the manifests. If it is empty, the list has whole resources and no manifests.
	Format Format
	// NamesOnly leaves out manifests and specs.
	NamesOnly bool
}

// LabelOperator is how a label is tested.
type LabelOperator string

// The values of [LabelOperator]. LabelIn and LabelNotIn need values. LabelIn does not hold for a resource without the
// label.
const (
	LabelIn     LabelOperator = "in"
	LabelNotIn  LabelOperator = "notIn"
	LabelExists LabelOperator = "exists"
	LabelAbsent LabelOperator = "absent"
)

// LabelTest is a test of one label.
type LabelTest struct {
	Key      string
	Operator LabelOperator
	Values   []string
}

// filter returns the test as a filter in the form of the API.
func (t LabelTest) filter() map[string]any {
	switch t.Operator {
	case LabelIn, LabelNotIn:
		return map[string]any{"key": t.Key, string(t.Operator): t.Values}
	}
	return map[string]any{"key": t.Key, "isNull": t.Operator == LabelAbsent}
}

// filterOf combines tests of labels with a filter; it returns nil if there is neither.
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

// UnreadableError is returned at the end of a complete list if the gateway could not read some resources of the kind
// and namespace. It is unknown whether these match the request.
type UnreadableError struct {
	Kind Kind
	// Count is the number of unreadable resources.
	Count int
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%d of kind %s cannot be read", e.Count, e.Kind.Name)
}

// List returns resources ordered by namespace and name. It requests them in pages. The iteration ends with the first
// error. At the end, there is an [*UnreadableError] if resources were left out.
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

// tooLarge reports whether an answer was larger than the client or the gateway allows.
func tooLarge(err error) bool {
	var e *Error
	return errors.Is(err, errTooLarge) || errors.As(err, &e) && e.Extensions.Code == "LIMIT_EXCEEDED" &&
		slices.Contains([]string{"limit-answer", "limit-objects", "limit-held", "limit-steps"}, e.Extensions.Setting)
}
