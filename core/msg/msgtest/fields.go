// Package msgtest helps tests that count the fields of messages and spans: that
// every one of them is carried over the wire, stored in a column or named as an
// attribute, or left out on purpose.
package msgtest

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// EachField calls f for every field of the struct base, nested ones under
// Outer.Inner, with a copy of base in which that field alone has another value.
// It panics on a field of a type that it cannot change.
func EachField[T any](base T, f func(name string, changed T)) {
	for _, path := range paths(reflect.TypeFor[T](), nil) {
		changed := base
		v := reflect.ValueOf(&changed).Elem()
		for _, name := range path {
			v = v.FieldByName(name)
		}
		change(v)
		f(strings.Join(path, "."), changed)
	}
}

func paths(typ reflect.Type, outer []string) [][]string {
	var out [][]string
	for i := range typ.NumField() {
		f := typ.Field(i)
		path := append(append([]string(nil), outer...), f.Name)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[msg.Text]() {
			out = append(out, paths(f.Type, path)...)
			continue
		}
		out = append(out, path)
	}
	return out
}

func change(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *msg.Text:
		*x = msg.Plain(x.String() + "x")
	case *[]msg.Attr:
		*x = append((*x)[:len(*x):len(*x)], msg.Attr{Key: "k", Value: "v"})
	case *[]string:
		*x = append((*x)[:len(*x):len(*x)], "x")
	case *msg.Completeness: // two of the three may look alike
		*x = (*x + 2) % 3
	case *string:
		*x += "x"
	case *bool:
		*x = !*x
	default:
		switch {
		case v.CanInt():
			v.SetInt(v.Int() + 7)
		case v.CanUint():
			v.SetUint(v.Uint() + 1)
		case v.Kind() == reflect.Array:
			change(v.Index(0))
		case v.Kind() == reflect.Slice:
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		default:
			panic(fmt.Sprintf("msgtest: no way to change a field of type %s", v.Type()))
		}
	}
}
