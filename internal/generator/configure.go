package generator

import (
	"github.com/99designs/gqlgen/codegen/config"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

const scalarImport = "github.com/sluicegw/sluice/graph/scalar"

// models sets what gqlgen is to know of a type and its fields.
type models struct{ *config.Config }

func (m models) field(typ, field string, set func(*config.TypeMapField)) {
	entry := m.Models[typ]
	if entry.Fields == nil {
		entry.Fields = map[string]config.TypeMapField{}
	}
	f := entry.Fields[field]
	set(&f)
	entry.Fields[field] = f
	m.Models[typ] = entry
}

func (m models) extra(typ, name, goType, description string) {
	entry := m.Models[typ]
	if entry.ExtraFields == nil {
		entry.ExtraFields = map[string]config.ModelExtraField{}
	}
	entry.ExtraFields[name] = config.ModelExtraField{Type: goType, Description: description}
	m.Models[typ] = entry
}

func resolver(f *config.TypeMapField) { f.Resolver = true }

func omittable(f *config.TypeMapField) { f.Omittable = new(true) }

// configure tells gqlgen what follows from each kind: which fields have
// resolvers, which inputs tell null from absent, what the model carries besides.
func configure(cfg *config.Config, schema *sdl.Schema) {
	m, d := models{cfg}, deriveTypes(schema)
	for _, k := range views(schema) {
		m.kind(k)
		for _, s := range []*backend.Shape{k.Spec, k.Status} {
			_ = eachShape(s, func(s *backend.Shape) error { m.shape(s, d); return nil })
		}
	}
}

func (m models) kind(k *kindView) {
	m.field(k.Name, "manifest", resolver)
	m.extra(k.Name, "Stored", "*"+backendImport+".Resource", "Stored is what the value was decoded from.")
	for _, r := range k.Refs {
		m.field(r.Owner, r.Field, resolver)
	}
	for _, v := range k.Inverses {
		m.field(k.Name, v.Inverse, resolver)
	}
	if k.Has(backend.VerbList) {
		m.field(k.Name+"Connection", "totalCount", resolver)
		m.field(k.Name+"Connection", "changeCursor", resolver)
		m.extra(k.Name+"Connection", "Page", "*"+serviceImport+".Page", "Page is the page itself; it counts when it is asked.")
	}
	if k.Has(backend.VerbWatch) {
		m.field(k.Name+"Change", k.Singular, resolver)
		m.extra(k.Name+"Change", "Change", "*"+serviceImport+".Change", "Change is the event itself; its resource is decoded when it is asked for.")
	}
	for verb, prefix := range map[backend.Verb]string{
		backend.VerbCreate: "Create", backend.VerbUpdate: "Update", backend.VerbPatch: "Patch", backend.VerbUpsert: "Upsert",
	} {
		if !k.Has(verb) {
			continue
		}
		for _, name := range []string{"labels", "annotations", "description"} {
			m.field(prefix+k.Name+"Input", name, omittable)
		}
		if k.Expires {
			m.field(prefix+k.Name+"Input", "expiresAt", omittable)
		}
	}
	if k.Has(backend.VerbPatch) {
		m.field("Patch"+k.Name+"Input", "spec", omittable)
	}
}

// shape configures what follows from an object type: patches tell null from
// absent, and maps are what is stored.
func (m models) shape(s *backend.Shape, d *derivation) {
	for _, f := range s.Fields {
		if d.patches[s.Name] != nil {
			m.field(sdl.PatchType(s.Name), f.Name, omittable)
		}
		if f.Type != backend.TypeMap {
			continue
		}
		m.field(s.Name, f.Name, func(f *config.TypeMapField) {
			f.Resolver, f.ForceGenerate, f.Type = true, true, scalarImport+".StringMap"
		})
		if d.inputs[s.Name] != nil {
			m.field(sdl.InputType(s.Name), f.Name, func(f *config.TypeMapField) { f.Type = scalarImport + ".StringMap" })
		}
		if d.patches[s.Name] != nil {
			m.field(sdl.PatchType(s.Name), f.Name, func(f *config.TypeMapField) { f.Type = scalarImport + ".StringMapPatch" })
		}
	}
}
