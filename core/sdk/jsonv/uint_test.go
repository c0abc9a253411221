package jsonv

import "testing"

// TestUint: a count is a number, or the digits of a string; anything else is none.
func TestUint(t *testing.T) {
	for in, want := range map[string]uint64{
		`12`: 12, `12.9`: 12, `-3`: 0, `"1280"`: 1280, `"-3"`: 0, `"12 tokens"`: 0, `""`: 0, `"99999999999999999999"`: 0, `null`: 0, `true`: 0, `[1]`: 0,
	} {
		var doc Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := doc.Root().Uint(); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}
