package browser

import (
	"slices"
	"testing"
)

// paints measures how soon a page shows something: at best within a tenth of a second. The machine does other work, so the
// least of a few is what counts. What the browser waits for before it paints is the same on every machine: style sheets, and
// not many bytes of them.
func paints(t *testing.T, w *world, b *tab) {
	b.setAppearance(t, "light", 1440, 900)
	for _, path := range []string{"/slow", "/tools", "/cost", "/now", "/boards/delegations", w.trace(t, demoSession)} {
		var paint []float64
		for range 4 {
			b.open(t, w.url+path)
			paint = append(paint, b.firstPaint(t)[0])
		}
		slices.Sort(paint)
		t.Logf("%-42s first paint %4.0f ms at best, %4.0f ms at worst", path, paint[0], paint[len(paint)-1])
		if paint[0] > 1000 { // ten times what it takes alone
			t.Errorf("%s shows nothing for %.0f ms", path, paint[0])
		}
		const blocking = `performance.getEntriesByType("resource").filter(r => r.renderBlockingStatus === "blocking")`
		if bad := eval[[]string](t, b, blocking+`.map(r => r.name).filter(n => !n.includes(".css"))`); len(bad) > 0 {
			t.Errorf("%s waits for %q before it shows something", path, bad)
		}
		if n := eval[int](t, b, blocking+`.reduce((sum, r) => sum + r.decodedBodySize, 0)`); n == 0 || n > 30_000 {
			t.Errorf("%s waits for %d bytes before it shows something", path, n)
		}
	}
}
