package inspect

import "testing"

// TestColumns: widths are those of a terminal, which draws East Asian characters and emoji in two columns and marks in none.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		clipped string // to 6 columns
		last    string // 3 columns of its end
	}{
		{"", 0, "", ""},
		{"harbour", 7, "harbo…", "our"},
		{"潮汐の時刻", 10, "潮汐…", "刻"},
		{"a潮汐の", 7, "a潮汐…", "の"},
		{"⛵ at sea", 9, "⛵ at…", "sea"},
		{"cafe\u0301s", 5, "cafe\u0301s", "fe\u0301s"},
		{"\x1b[31mred\x1b[0m", 3, "red", "red"},
		{"גאות ושפל", 9, "גאות …", "שפל"},
		{"한국", 4, "한국", "국"},
		{"\u1112\u1161\u11ab", 2, "\u1112\u1161\u11ab", "\u1112\u1161\u11ab"},
	} {
		if got := Visible(c.text); got != c.columns {
			t.Errorf("%q: %d columns, want %d", c.text, got, c.columns)
		}
		if got := Clip(c.text, 6); got != c.clipped || Visible(Pad(got, 6)) != 6 {
			t.Errorf("%q: %q, want %q", c.text, got, c.clipped)
		}
		if got := Last(Plain(c.text), 3); got != c.last {
			t.Errorf("the end of %q: %q, want %q", c.text, got, c.last)
		}
	}
}
