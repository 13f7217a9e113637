package engine

import (
	"strconv"

	"github.com/sluicegw/sluice/backend/service/query"
)

// summary counts the resources of a kind.
func (r *run) summary(f *field, args map[string]any) (*query.Summary, error) {
	return r.engine.svc.Summary(r.ctx, query.SummaryRequest{
		Kind: f.kind.Name, Namespace: optional[string](args, "namespace"), Filter: args["filter"],
		By: elementsOf[string](args, "by"), Conditions: elementsOf[string](args, "conditions"),
	})
}

// summaryField writes a field of a summary, of a group or of a key.
func (r *run) summaryField(buf []byte, f *field, src *source) ([]byte, bool) {
	s := src.summary
	switch f.op {
	case opUnreadableSummary:
		n, err := s.Unreadable(r.ctx)
		if err != nil {
			return r.null(buf, f, err)
		}
		return strconv.AppendInt(buf, int64(n), 10), true
	case opGroups:
		r.count(f, len(s.Groups))
		return r.list(buf, f, len(s.Groups), func(i int) source { return source{summary: s, group: i} }), true
	case opGroupKeys:
		group := src.group
		return r.list(buf, f, len(s.Paths), func(i int) source { return source{summary: s, group: group, index: i} }), true
	case opGroupCount:
		return strconv.AppendInt(buf, int64(s.Groups[src.group].Count), 10), true
	case opGroupPath:
		return appendText(buf, s.Paths[src.index]), true
	}
	return r.text(buf, s.Groups[src.group].Values[src.index])
}
