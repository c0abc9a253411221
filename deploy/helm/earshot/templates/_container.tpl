{{- define "earshot.container" -}}
- name: earshot
  image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
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
    runAsNonRoot: true
    runAsUser: 65532
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
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
