package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/kinds"
)

// standardPull has the flags of `sluice service pull --grpc`.
type standardPull struct {
	grpc     bool
	kinds    []string
	mapping  string
	maxText  int
	maxItems int
}

func (s *standardPull) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.grpc, "grpc", false, "the service has standard methods of gRPC, not the contract: ask for its descriptors by "+
		"reflection, or read a file with them (FileDescriptorSet)")
	f.StringSliceVar(&s.kinds, "kind", nil, "with --grpc: kind or message to write; can be repeated (default: all that can be served)")
	f.StringVar(&s.mapping, "mapping", "",
		"with --grpc: file to write that says how the methods are called; what it has already is kept")
	f.IntVar(&s.maxText, "max-length", standard.DefaultLength,
		"with --grpc: maxLength of texts for which the API declares none")
	f.IntVar(&s.maxItems, "max-items", standard.DefaultItems,
		"with --grpc: maxItems of lists and maxProperties of maps for which the API declares none")
}

// validate returns an error for flags that cannot be combined.
func (s *standardPull) validate(to string) error {
	switch {
	case !s.grpc && (s.mapping != "" || len(s.kinds) > 0):
		return errors.New("kind, mapping: they need --grpc")
	case !s.grpc:
	case to == "" || s.mapping == "":
		return errors.New("with --grpc, both --to and --mapping are needed: the files are reviewed and kept together")
	case s.maxText <= 0 || s.maxItems <= 0:
		return errors.New("max-length, max-items: whole numbers above 0 are accepted")
	}
	return nil
}

// standardLimits returns the limits of the SDL for a service with standard methods.
func standardLimits(length, items int) (standard.Limits, error) {
	reserved, err := kinds.ReservedTypes()
	return standard.Limits{Length: length, Items: items, Reserved: reserved}, err
}

// isAddress matches the URL of a service. An argument that it does not match is a file.
var isAddress = regexp.MustCompile(`^[a-z]+://`)

// descriptors returns the descriptors of an API, and the name of the file that has them. The name is empty if the
// descriptors come from a service.
func (p servicePull) descriptors(ctx context.Context, from string) (raw []byte, file string, err error) {
	if !isAddress.MatchString(from) {
		raw, err = config.ReadAtMost(from, standard.MaxDescriptors)
		return raw, from, err
	}
	connection := p.connection
	if !p.protocolChosen {
		connection.protocol = string(remote.GRPC)
	}
	client, err := connection.client(ctx, from)
	if err != nil {
		return nil, "", exit.Usage(err)
	}
	defer client.Close()
	raw, err = standard.Reflect(ctx, client)
	return raw, "", err
}

// runStandard writes the SDL and the mapping for a service with standard methods.
func (p servicePull) runStandard(ctx context.Context, from string) error {
	raw, file, err := p.descriptors(ctx, from)
	if err != nil {
		return err
	}
	d, err := standard.ReadDescriptors(raw)
	if err != nil {
		return err
	}
	given, err := p.givenMapping()
	if err != nil {
		return err
	}
	name := p.name
	if name == "" {
		name = d.Name()
	}
	if err := config.CheckServiceName(name); err != nil {
		return exit.Usage(fmt.Errorf("name: %q: %w; choose one with --name", output.Printable(name), err))
	}
	limits, err := standardLimits(p.standard.maxText, p.standard.maxItems)
	if err != nil {
		return err
	}
	pulled, err := d.Catalogue(name, p.standard.kinds, given, limits)
	if err == nil && len(p.standard.kinds) == 0 {
		pulled, err = p.withoutUnservable(d, pulled, given, name)
	}
	if err != nil {
		return err
	}
	p.explain(pulled)
	unserved := pulled.Refused
	if len(p.standard.kinds) == 0 && len(pulled.Kinds) > 0 { // then only the kinds in the given mapping must be served
		unserved = slices.DeleteFunc(slices.Clone(unserved), func(one standard.Omitted) bool {
			return given.Kinds[one.Path] == nil
		})
	}
	if len(pulled.Kinds) == 0 || len(unserved) > 0 {
		return fmt.Errorf("%s: nothing was written, since %s cannot be served", output.Printable(from), kindsIn(unserved))
	}
	text := "# Written by sluice service pull --grpc. Review it: what the service says later does not change it.\n" + pulled.SDL
	if _, err := p.check(text, name); err != nil {
		return err
	}
	pulled.Mapping.Descriptors = given.Descriptors
	for name, k := range given.Kinds { // what was not asked for stays
		if pulled.Mapping.Kinds[name] == nil {
			pulled.Mapping.Kinds[name] = k
		}
	}
	if err := p.writeDescriptors(pulled.Mapping, file, raw); err != nil {
		return err
	}
	mapping, err := pulled.Mapping.YAML()
	if err != nil {
		return err
	}
	if err := writeFile("mapping", p.standard.mapping, mapping); err != nil {
		return err
	}
	if err := writeFile("to", p.to, []byte(text)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.std.Out, "%s: %s of the service %s, with the mapping %s\n", output.Printable(p.to),
		output.Plural(len(pulled.Kinds), "kind"), name, output.Printable(p.standard.mapping))
	return err
}

// kindsIn returns the number of kinds that were refused, as text. A kind counts once even if it was refused for several
// reasons.
func kindsIn(refused []standard.Omitted) string {
	names := map[string]bool{}
	for _, one := range refused {
		names[one.Path] = true
	}
	return output.Plural(len(names), "kind")
}

// withoutUnservable removes the kinds that a catalogue cannot have, such as those with reserved names. Of kinds that
// cannot be in one catalogue, such as those with equal plurals, it keeps one.
func (p servicePull) withoutUnservable(
	d *standard.Descriptors, pulled *standard.Catalogue, given *standard.Mapping, name string,
) (*standard.Catalogue, error) {
	if _, err := p.check(pulled.SDL, name); err == nil || len(pulled.Kinds) == 0 {
		return pulled, nil
	}
	limits, err := standardLimits(p.standard.maxText, p.standard.maxItems)
	if err != nil {
		return nil, err
	}
	s := selection{
		check:     func(sdl string) string { return p.unservable(sdl, name) },
		catalogue: func(kinds []string) (*standard.Catalogue, error) { return d.Catalogue(name, kinds, given, limits) },
		refused:   pulled.Refused,
	}
	var others []candidate
	for _, kind := range pulled.Kinds {
		one := candidate{kind: kind, name: kind, message: pulled.Mapping.Kinds[kind].Message}
		if given.Kinds[kind] != nil {
			s.kinds = append(s.kinds, one)
			continue
		}
		one.name = one.message // since several messages may have the name
		others = append(others, one)
	}
	s.kinds = append(s.kinds, others...)
	if err := s.removeUnservable(); err != nil {
		return nil, err
	}
	return s.removeClashing()
}

// unservable returns why a catalogue cannot have an SDL; "" if it can. The SDL is not written, so its lines are not
// named.
func (p servicePull) unservable(sdl, name string) string {
	_, err := p.check(sdl, name)
	if err == nil {
		return ""
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if rest, own := strings.CutPrefix(line, filepath.Join(filepath.Dir(p.to), p.file(name))+":"); own {
			_, lines[i], _ = strings.Cut(rest, ": ")
		}
	}
	return strings.Join(lines, "; ")
}

// selection selects the kinds of a service that a catalogue can have together.
type selection struct {
	// check returns why a catalogue cannot have an SDL; "" if it can.
	check func(sdl string) string
	// catalogue returns the SDL of kinds.
	catalogue func(names []string) (*standard.Catalogue, error)
	// kinds are the kinds that were not refused. Those of the given mapping are the first, so they are preferred to
	// others.
	kinds []candidate
	// refused lists the kinds that were refused.
	refused []standard.Omitted
}

// candidate is a kind of a selection. name is the name by which Catalogue knows it. message is the message of its
// resources.
type candidate struct{ kind, name, message string }

// try returns the SDL of kinds. why is the reason if a catalogue cannot have it.
func (s *selection) try(kinds []candidate) (made *standard.Catalogue, why string, err error) {
	names := make([]string, len(kinds))
	for i, one := range kinds {
		names[i] = one.name
	}
	if made, err = s.catalogue(names); err != nil {
		return nil, "", err
	}
	return made, s.check(made.SDL), nil
}

// removeUnservable removes the kinds that no catalogue can have.
func (s *selection) removeUnservable() error {
	all := s.kinds
	s.kinds = nil
	for _, one := range all {
		_, why, err := s.try([]candidate{one})
		switch {
		case err != nil:
			return err
		case why != "":
			s.refused = append(s.refused, standard.Omitted{Path: one.kind, Why: fmt.Sprintf(
				"%s; a kind of another name in the mapping can have the message %s", why, one.message)})
		default:
			s.kinds = append(s.kinds, one)
		}
	}
	return nil
}

// removeClashing removes kinds until a catalogue can have the others together, and returns their SDL. It removes a kind
// that a catalogue cannot have together with the kinds before it.
func (s *selection) removeClashing() (*standard.Catalogue, error) {
	served := 0 // the number of the first kinds that are known to go together
	for len(s.kinds) > 0 {
		made, why, err := s.try(s.kinds)
		if err != nil {
			return nil, err
		}
		if why == "" {
			made.Refused = append(s.refused, made.Refused...)
			return made, nil
		}
		fails := len(s.kinds) // the number of the first kinds that are known not to go together, because of why
		for served+1 < fails {
			middle := (served + fails) / 2
			_, not, err := s.try(s.kinds[:middle])
			switch {
			case err != nil:
				return nil, err
			case not == "":
				served = middle
			default:
				fails = middle
				why = not
			}
		}
		s.refused = append(s.refused, standard.Omitted{
			Path: s.kinds[served].kind, Why: why + "; --kind chooses which of them is served",
		})
		s.kinds = slices.Delete(s.kinds, served, served+1)
	}
	return &standard.Catalogue{Refused: s.refused}, nil
}

// givenMapping reads the file of the mapping. If the file does not exist, the mapping is empty.
func (p servicePull) givenMapping() (*standard.Mapping, error) {
	text, err := config.ReadAtMost(p.standard.mapping, standard.MaxMapping)
	if errors.Is(err, os.ErrNotExist) {
		return &standard.Mapping{}, nil
	}
	if err != nil {
		return nil, err
	}
	out, err := standard.ParseMapping(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.standard.mapping, err)
	}
	return out, nil
}

// writeDescriptors writes the descriptors of a service next to the mapping, and sets their path in the mapping.
func (p servicePull) writeDescriptors(m *standard.Mapping, file string, raw []byte) error {
	dir := filepath.Dir(p.standard.mapping)
	if file == "" {
		base := filepath.Base(p.standard.mapping)
		m.Descriptors = strings.TrimSuffix(base, filepath.Ext(base)) + ".binpb"
		return writeFile("mapping", filepath.Join(dir, m.Descriptors), raw)
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	m.Descriptors, err = filepath.Rel(from, absolute)
	if err != nil {
		m.Descriptors = absolute
	}
	m.Descriptors = filepath.ToSlash(m.Descriptors)
	return nil
}

// explain prints what was left out or cannot be served, with reasons. It also prints the notes about the mapping, and
// which limits the API does not declare.
func (p servicePull) explain(pulled *standard.Catalogue) {
	for _, of := range []struct {
		what  string
		lines []standard.Omitted
	}{
		{"cannot be served", pulled.Refused},
		{"left out", pulled.Omitted},
		{"note", pulled.Notes},
		{"limit of --max-length and --max-items", pulled.Limited},
	} {
		for _, one := range of.lines {
			_, _ = fmt.Fprintf(p.std.Err, "sluice: %s: %s\n", of.what, output.Printable(one.String()))
		}
	}
}
