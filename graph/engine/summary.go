package engine

import (
	"context"

	"github.com/sluicegw/sluice/backend/service/query"
)

func summaryRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveSummary, write: writeRootObject}
}

// resolveSummary counts the resources of a kind.
func resolveSummary(ctx context.Context, r *run, f *field, a *resolved, args *arguments) (err error) {
	a.summary, err = r.engine.svc.Reader.Summary(ctx, query.SummaryRequest{
		Kind:       f.kind.Name,
		Namespace:  optional[string](args.values, "namespace"),
		Filter:     args.values["filter"],
		FieldNames: f.fieldNames(),
		By:         elementsOf[string](args.values, "by"),
		Conditions: elementsOf[string](args.values, "conditions"),
	})
	return err
}

func summaryFields() fieldTable {
	return fieldTable{
		"groups":          {write: writeGroups},
		"unreadableCount": {write: counted(summaryUnreadable)},
	}
}

func summaryGroupFields() fieldTable {
	return fieldTable{
		"keys":  {write: writeGroupKeys},
		"count": {write: integer(func(src source) int { return src.summaryGroup().Count })},
	}
}

func summaryKeyFields() fieldTable {
	return fieldTable{
		"path":  {write: text(func(src source) string { return src.root.summary.Paths[src.index] })},
		"value": {write: writeGroupValue},
	}
}

func (src source) summaryGroup() *query.Group { return &src.root.summary.Groups[src.group] }

func summaryUnreadable(ctx context.Context, src source) (int, error) {
	return src.root.summary.Unreadable(ctx)
}

func writeGroups(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	n := len(src.root.summary.Groups)
	r.count(f, n)
	return r.list(ctx, buf, f, n, func(i int) source { return source{root: src.root, group: i} }), true
}

func writeGroupKeys(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.list(ctx, buf, f, len(src.root.summary.Paths), func(i int) source {
		return source{root: src.root, group: src.group, index: i}
	}), true
}

func writeGroupValue(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendOptional(buf, src.summaryGroup().Values[src.index])
}
