{{- define "earshot.container" -}}
- name: earshot
  image: "{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}"
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: ["run", "-c", "/etc/earshot/earshot.yaml"]
  env:
    - name: CLICKHOUSE_WRITER_PASSWORD
      valueFrom:
        secretKeyRef:
          name: {{ .Values.clickhouseSecret.name }}
          key: {{ .Values.clickhouseSecret.key }}
  ports:
    - {name: metrics, containerPort: 9464}
  readinessProbe:
    httpGet: {path: /readyz, port: metrics}
  livenessProbe:
    httpGet: {path: /healthz, port: metrics}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
{{- if .Values.daemonSet.enabled }}
    # The folders of a node belong to root, and transcripts, of mode 0600, to their users.
    runAsUser: 0
    capabilities: {drop: [ALL], add: [DAC_READ_SEARCH]}
{{- else }}
    runAsNonRoot: true
    runAsUser: 65532
    capabilities: {drop: [ALL]}
{{- end }}
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: earshot-config, mountPath: /etc/earshot, readOnly: true}
    - {name: traffic, mountPath: /traffic, readOnly: true}
    - {name: earshot-data, mountPath: /data}
    - {name: earshot-tmp, mountPath: /tmp}
{{- end }}

{{- /* What the container mounts, beside traffic and, on a node, its data. */}}
{{- define "earshot.volumes" -}}
- name: earshot-config
  configMap: {name: {{ .Release.Name }}-earshot}
- name: earshot-tmp
  emptyDir: {}
{{- if not .Values.daemonSet.enabled }}
- name: earshot-data
  emptyDir: {sizeLimit: 2Gi}
{{- end }}
{{- end }}
