package jsonv

import "testing"

// TestInner: an object or a list in a string is read, in any spelling; everything else stays as it is.
func TestInner(t *testing.T) {
	for in, want := range map[string]string{
		`"{\"a\":\"b\"}"`: `{"a":"b"}`, `"[1,2]"`: `[1,2]`, `"{\"a\":\"\\u0041\"}"`: `{"a":"\u0041"}`, `"[]"`: `[]`,
		`{"a":1}`: `{"a":1}`, `"text"`: `"text"`, `"{broken"`: `"{broken"`, `"[1] and more"`: `"[1] and more"`, `"\"a\""`: `"\"a\""`, `""`: `""`, `7`: `7`, `null`: `null`,
	} {
		v := parse(t, in)
		var d Doc
		if got := string(d.Inner(v).Peek()); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	var d Doc
	if v := d.Inner(Value{}); v.Exists() {
		t.Errorf("nothing has %s", v.Peek())
	}
	v := parse(t, `"[\"sixteen bytes and more\"]"`)
	if in := d.Inner(v); len(v.d.Unread(16, func([]string) bool { return false })) != 0 || len(d.Unread(16, func([]string) bool { return false })) != 1 || in.Len() != 1 {
		t.Error("the string does not count as read, or what is in it does")
	}
}
