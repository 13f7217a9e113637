package server

import "github.com/vektah/gqlparser/v2/ast"

// work computes an upper bound for the cost of validating a document. It must be known before the validation, because
// gqlparser cannot be interrupted. Nearly all of the cost is caused by the rule OverlappingFieldsCanBeMerged: it
// compares fields with the same response name in pairs, level by level, and does so again for each fragment and inline
// fragment. A unit of cost is about one comparison of two fields, or one visit of a selection. The document must not
// have cycles of fragments.
type work struct {
	fragments map[string]*ast.FragmentDefinition
	spent     int
}

// validationWork returns the cost of a document, or some number above MaxValidation.
func validationWork(doc *ast.QueryDocument) int {
	w := &work{fragments: map[string]*ast.FragmentDefinition{}}
	for _, f := range doc.Fragments {
		w.fragments[f.Name] = f
	}
	for _, o := range doc.Operations {
		w.root(o.SelectionSet)
	}
	for _, f := range doc.Fragments {
		w.root(f.SelectionSet)
	}
	return w.spent
}

func (w *work) over() bool { return w.spent > MaxValidation }

// root adds the cost of an operation or a fragment. Its selections are compared as a whole. The selections of each
// inline fragment in it are compared too.
func (w *work) root(set ast.SelectionSet) {
	w.compare(set)
	w.walk(set, map[string]bool{})
}

// walk counts the selections that validation visits: for each root, each fragment once.
func (w *work) walk(set ast.SelectionSet, visited map[string]bool) {
	for _, sel := range set {
		if w.spent++; w.over() {
			return
		}
		switch sel := sel.(type) {
		case *ast.Field:
			w.walk(sel.SelectionSet, visited)
		case *ast.InlineFragment:
			w.compare(sel.SelectionSet)
			w.walk(sel.SelectionSet, visited)
		case *ast.FragmentSpread:
			if f := w.fragments[sel.Name]; f != nil && !visited[sel.Name] {
				visited[sel.Name] = true
				w.walk(f.SelectionSet, visited)
			}
		}
	}
}

// selected is everything that is selected at one path of the answer, with fragments expanded. spread is the number of
// fragment spreads in it.
type selected struct {
	fields             map[string]*namesakes
	selections, spread int
}

// namesakes are the fields with the same response name at one path.
type namesakes struct {
	weight int // the number of fields and of their arguments
	sets   []ast.SelectionSet
}

// compare adds the cost of comparing fields with the same response name in some selection sets and below.
func (w *work) compare(sets ...ast.SelectionSet) selected {
	l := selected{fields: map[string]*namesakes{}}
	for _, set := range sets {
		w.collect(&l, set)
	}
	w.spent += l.spread * (l.spread + l.selections)
	for _, g := range l.fields {
		if w.over() {
			break
		}
		below := w.compare(g.sets...)
		w.spent += g.weight * (g.weight + below.selections)
	}
	return l
}

func (w *work) collect(l *selected, set ast.SelectionSet) {
	for _, sel := range set {
		if w.spent++; w.over() {
			return
		}
		l.selections++
		switch sel := sel.(type) {
		case *ast.Field:
			g := l.fields[sel.Alias]
			if g == nil {
				g = &namesakes{}
				l.fields[sel.Alias] = g
			}
			g.weight += 1 + len(sel.Arguments)
			g.sets = append(g.sets, sel.SelectionSet)
		case *ast.InlineFragment:
			w.collect(l, sel.SelectionSet)
		case *ast.FragmentSpread:
			l.spread++
			if f := w.fragments[sel.Name]; f != nil {
				w.collect(l, f.SelectionSet)
			}
		}
	}
}
