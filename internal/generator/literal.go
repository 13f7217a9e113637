package generator

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// literal writes a value of package backend as Go source: what is zero is left
// out, so that descriptors can grow without a change here.
func literal(v any) string { return goValue(reflect.ValueOf(v), false) }

// goValue writes one value; elided leaves out the type of a composite, as in a slice.
func goValue(v reflect.Value, elided bool) string {
	switch v.Kind() {
	case reflect.String:
		if v.Type().PkgPath() == "encoding/json" {
			return fmt.Sprintf("json.Number(%q)", v.String())
		}
		return strconv.Quote(v.String())
	case reflect.Bool, reflect.Int:
		return fmt.Sprint(v.Interface())
	case reflect.Float64:
		return fmt.Sprintf("float64(%s)", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Interface:
		return goValue(v.Elem(), false)
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Struct {
			return "&" + goValue(v.Elem(), false)
		}
		return "new(" + goValue(v.Elem(), false) + ")"
	case reflect.Slice:
		elems := make([]string, v.Len())
		for i := range elems {
			elems[i] = goValue(v.Index(i), true)
		}
		return v.Type().String() + braces(elems)
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && f.Kind() != reflect.Func {
				fields = append(fields, v.Type().Field(i).Name+": "+goValue(f, false))
			}
		}
		if elided {
			return braces(fields)
		}
		return v.Type().String() + braces(fields)
	}
	panic(fmt.Sprintf("literal: %s has no form in the catalogue", v.Type()))
}

// lineWidth is where a composite literal is broken into lines.
const lineWidth = 100

func braces(parts []string) string {
	text := strings.Join(parts, ", ")
	if len(text) < lineWidth && !strings.Contains(text, "\n") {
		return "{" + text + "}"
	}
	return "{\n" + strings.Join(parts, ",\n") + ",\n}"
}
