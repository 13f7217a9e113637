package kinds

import "github.com/vektah/gqlparser/v2/ast"

// APISources are the SDL that is the same whatever the kinds are.
func APISources() ([]*ast.Source, error) { return apiSources() }

// Directives is the SDL of the directives that authors write.
func Directives() string { return directivesSDL }

// Reserved are the names that no catalogue can take, by the table of the manual
// that has them; those of the API's own types are not among them.
func Reserved() map[string][]string {
	return map[string][]string{
		"types of a kind":      DerivedTypes("Shelf"),
		"types":                laterTypes(),
		"beginnings of types":  reservedPrefixes(),
		"kinds":                besides(),
		"fields of every kind": append(append(kindFields(), "spec", "status"), laterKindFields()...),
		"fields of Query":      laterQueries(),
		"words":                commandWords(),
		"columns":              tableColumns(),
	}
}
