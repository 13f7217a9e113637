package engine

import (
	"strconv"

	"github.com/sluicegw/sluice/backend/service/query"
)

// summary counts the resources of a kind.
func (r *run) summary(f *field, args map[string]any) (*query.Summary, error) {
	return r.engine.svc.Summary(r.ctx, r.caller, query.SummaryRequest{
		Kind: f.kind.Name, Namespace: optional[string](args, "namespace"), Filter: args["filter"],
		By: texts(args, "by"), Conditions: texts(args, "conditions"),
	})
}

// summaryField writes a field of a summary, of a group or of a key.
func (r *run) summaryField(buf []byte, f *field, src *source) ([]byte, bool) {
	s := src.summary
	switch f.op {
	case opGroups:
		r.count(f, len(s.Groups))
		buf = append(buf, '[')
		for i := range s.Groups {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf, _ = r.object(buf, f.sub, &source{summary: s, group: i})
		}
		return append(buf, ']'), true
	case opGroupKeys:
		buf = append(buf, '[')
		for i := range s.Paths {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf, _ = r.object(buf, f.sub, &source{summary: s, group: src.group, index: i})
		}
		return append(buf, ']'), true
	case opGroupCount:
		return strconv.AppendInt(buf, int64(s.Groups[src.group].Count), 10), true
	case opGroupPath:
		return appendText(buf, s.Paths[src.index]), true
	}
	return r.text(buf, s.Groups[src.group].Values[src.index])
}
