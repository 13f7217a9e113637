package operate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// ownedSDL returns the SDL of a service in the form for a catalogue. In that form each kind names the service as its
// owner, and has only the verbs that the service supports. Everything else is unchanged. file is the name of the SDL in
// errors.
func ownedSDL(d owner.Description, name, file string) (string, error) {
	if strings.TrimSpace(d.SDL) == "" {
		return "", errors.New("the service has no SDL; write the kinds by hand, and have Describe return them as sdl")
	}
	if strings.ContainsFunc(d.SDL, unwanted) {
		return "", errors.New("the SDL of the service has control characters; line ends and tabs are accepted")
	}
	doc, err := parser.ParseSchema(&ast.Source{Name: file, Input: d.SDL})
	if err != nil {
		return "", err
	}
	text := []rune(d.SDL)
	var out strings.Builder
	done := 0
	for _, def := range doc.Definitions {
		resource := def.Directives.ForName("resource")
		if resource == nil {
			continue
		}
		i := slices.IndexFunc(d.Kinds, func(k owner.Kind) bool { return k.Name == def.Name })
		if i < 0 {
			return "", fmt.Errorf("%s:%d: the SDL has the kind %s, which Describe does not name",
				file, resource.Position.Line, def.Name)
		}
		arguments, err := ownedArguments(resource, d.Kinds[i], name)
		if err != nil {
			return "", fmt.Errorf("%s:%d: kind %s: %w", file, resource.Position.Line, def.Name, err)
		}
		if arguments == "" {
			continue
		}
		out.WriteString(string(text[done:resource.Position.End]))
		out.WriteString(arguments)
		done = endOfArguments(text, resource.Position.End)
	}
	out.WriteString(string(text[done:]))
	return strings.TrimRight(out.String(), "\n") + "\n", nil
}

// unwanted reports whether a character is not acceptable in the files of a catalogue, because people read them.
func unwanted(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }

// ownedArguments returns the new arguments of @resource for a kind that a service owns; empty if they need no change.
func ownedArguments(d *ast.Directive, can owner.Kind, name string) (string, error) {
	verbs := ownedVerbs(d, can)
	if len(verbs) == 0 {
		return "", errors.New("none of the verbs that the SDL has is one that the service can carry out")
	}
	service := "service: " + strconv.Quote(name)
	offered := "verbs: [" + strings.Join(verbs, ", ") + "]"
	var arguments []string
	right := 0
	for _, a := range d.Arguments {
		switch a.Name {
		case "service":
			if a.Value.Raw == name {
				right++
			}
		case "verbs":
			if slices.Equal(textsOf(a.Value), verbs) {
				right++
			}
		case "exceptVerbs":
		default:
			arguments = append(arguments, a.Name+": "+a.Value.String())
		}
	}
	if right == 2 && d.Arguments.ForName("exceptVerbs") == nil {
		return "", nil
	}
	return "(" + strings.Join(append(arguments, service, offered), ", ") + ")", nil
}

// ownedVerbs returns the verbs that both the SDL declares for a kind and the service supports.
func ownedVerbs(d *ast.Directive, can owner.Kind) []string {
	possible := verbsOf(can)
	given := d.Arguments.ForName("verbs")
	if given == nil {
		except := textsOf(argumentOf(d, "exceptVerbs"))
		return slices.DeleteFunc(possible, func(v string) bool { return slices.Contains(except, v) })
	}
	return slices.DeleteFunc(textsOf(given.Value), func(v string) bool { return !slices.Contains(possible, v) })
}

// verbsOf returns the verbs that a service supports for a kind.
func verbsOf(can owner.Kind) (out []string) {
	for _, of := range []struct {
		verb     descriptor.Verb
		possible bool
	}{
		{descriptor.VerbGet, true},
		{descriptor.VerbList, true},
		{descriptor.VerbWatch, true},
		{descriptor.VerbCreate, can.Writes},
		{descriptor.VerbUpdate, can.Writes && can.Conditional},
		{descriptor.VerbPatch, can.Writes && can.Conditional},
		{descriptor.VerbUpsert, can.Writes},
		{descriptor.VerbDelete, can.Writes},
	} {
		if of.possible {
			out = append(out, string(of.verb))
		}
	}
	return out
}

// argumentOf returns the value of an argument; nil if there is none.
func argumentOf(d *ast.Directive, name string) *ast.Value {
	if a := d.Arguments.ForName(name); a != nil {
		return a.Value
	}
	return nil
}

// textsOf returns the elements of a list. As in GraphQL, a single value is a list of one element.
func textsOf(v *ast.Value) (out []string) {
	if v == nil {
		return nil
	}
	if v.Kind != ast.ListValue {
		return []string{v.Raw}
	}
	for _, element := range v.Children {
		out = append(out, element.Value.Raw)
	}
	return out
}

// endOfArguments returns the position after the arguments of a directive. from is the position after the name of the
// directive; it is returned if there are no arguments.
func endOfArguments(text []rune, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch r := text[i]; {
		case r == '#':
			for i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		case r == '"':
			i = endOfString(text, i) - 1
		case r == '(':
			depth++
		case r == ')':
			depth--
			if depth == 0 {
				return i + 1
			}
		case depth == 0 && !unicode.IsSpace(r) && r != ',' && r != '\ufeff':
			return from
		}
	}
	return from
}

// endOfString returns the position after the string that begins at the position begin.
func endOfString(text []rune, begin int) int {
	const block = `"""`
	if begin+3 <= len(text) && string(text[begin:begin+3]) == block {
		for i := begin + 3; i+3 <= len(text); i++ {
			if string(text[i:i+3]) != block {
				continue
			}
			if text[i-1] != '\\' {
				return i + 3
			}
			i += 2
		}
		return len(text)
	}
	for i := begin + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
