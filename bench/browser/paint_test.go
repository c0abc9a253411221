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
	var ours, bare []float64
	for _, path := range []string{
		"/slow", "/sessions", "/session/" + demoSession, "/tools", "/cost", "/now", "/changes", "/compare", "/search?q=checkout", "/boards", "/boards/delegations",
		w.trace(t, demoSession), w.trace(t, longSession),
	} {
		var paint []float64
		for range 4 {
			b.open(t, w.url+emptyPage)
			bare = append(bare, b.firstPaint(t)[0])
			b.open(t, w.url+path)
			paint = append(paint, b.firstPaint(t)[0])
		}
		ours = append(ours, paint...)
		slices.Sort(paint)
		t.Logf("%-42s first paint %4.0f ms at best, %4.0f ms at worst", path, paint[0], paint[len(paint)-1])
		if paint[0] > 1000 { // ten times as long as alone
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
	page, empty := median(ours), median(bare)
	t.Logf("first paint, median: %.0f ms, %.1f times the %.0f ms of a text without style sheets, scripts and data", page, page/empty, empty)
	if page > 4*empty {
		t.Errorf("the pages show nothing for %.0f ms, an empty one for %.0f ms", page, empty)
	}
}

// emptyPage is a short text of the same server: its first paint is what the browser and the machine take.
const emptyPage = "/assets/uplot.LICENSE"

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
