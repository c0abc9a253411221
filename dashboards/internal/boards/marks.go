package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// mostMarks is how many marks of a sort a chart has: more hide it.
const mostMarks = "50"

// marks are moments that may explain a change in the charts: new versions of agents, starts of Earshot itself, and
// findings in runs.
func marks() []grafana.Annotation {
	return []grafana.Annotation{
		// A version is new that no run of the thirty days before had.
		grafana.Mark("New versions of agents", "blue", sql(`
SELECT min(s.ts) AS time, concat(toString(s.format), ' ', toString(s.agent_version)) AS text
FROM spans AS s
WHERE s.ts >= $__fromTime_ms - INTERVAL 30 DAY AND s.ts <= $__toTime_ms AND s.agent_version != ''
GROUP BY text
HAVING time >= $__fromTime_ms
ORDER BY time, text
LIMIT `+mostMarks)),
		grafana.Mark("Starts of Earshot", "purple", sql(`
SELECT since AS time, concat('Earshot reads ', arrayStringConcat(arraySort(groupUniqArray(toString(source))), ', ')) AS text
FROM source_ledger FINAL
WHERE since >= $__fromTime_ms AND since <= $__toTime_ms
GROUP BY time
ORDER BY time
LIMIT `+mostMarks)),
		grafana.Mark("Findings", "orange", sql(`
SELECT ts AS time, concat(replaceAll(toString(kind), '_', ' '), if(tool_name = '', '', concat(' of ', tool_name)), ' in ', `+agent+`) AS text
FROM v_findings
`+where("format", "agent")+`
ORDER BY time, text
LIMIT `+mostMarks)),
	}
}
