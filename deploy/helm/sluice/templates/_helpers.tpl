{{- define "sluice.name" -}}
{{- if contains "sluice" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-sluice" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The settings of the gateway: those of the values, and those that follow from other values. */ -}}
{{- define "sluice.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if hasKey $settings "listen" -}}
{{- fail "settings.listen: the chart sets it; service.port is the port of the service" -}}
{{- end -}}
{{- $_ := set $settings "listen" "0.0.0.0:8080" -}}
{{- if .Values.redis.url -}}
{{- $_ := set $settings "redis" .Values.redis.url -}}
{{- else -}}
{{- $_ := set $settings "data" "/var/lib/sluice/sluice-data" -}}
{{- end -}}
{{- range $name, $_text := .Values.files -}}
{{- if hasKey $settings $name -}}
{{- fail (printf "files.%s: settings.%s is given, too; give it in one place" $name $name) -}}
{{- end -}}
{{- $_ := set $settings $name (printf "/etc/sluice/%s" $name) -}}
{{- end -}}
{{- range $name, $file := .Values.secretFiles -}}
{{- if hasKey $settings $name -}}
{{- fail (printf "secretFiles.%s: settings.%s or files.%s is given, too; give it in one place" $name $name $name) -}}
{{- end -}}
{{- if not (and (get $file "secret") (get $file "key")) -}}
{{- fail (printf "secretFiles.%s: a secret and a key are wanted, as in {secret: NAME, key: KEY}" $name) -}}
{{- end -}}
{{- $_ := set $settings $name (printf "/etc/sluice-secrets/%s/%s" $name $file.key) -}}
{{- end -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $settings "tls-cert" "/etc/sluice-tls/tls.crt" -}}
{{- $_ := set $settings "tls-key" "/etc/sluice-tls/tls.key" -}}
{{- end -}}
{{- if .Values.catalogue.configMap -}}
{{- $_ := set $settings "catalogue" "/etc/sluice-catalogue" -}}
{{- end -}}
{{- $hosts := get $settings "allowed-hosts" | default list -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: the name of a host is wanted" -}}
{{- end -}}
{{- if .Values.ingress.enabled -}}
{{- $hosts = append $hosts .Values.ingress.host -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not (and .Values.httpRoute.hostnames .Values.httpRoute.parentRefs)) -}}
{{- fail "httpRoute: hostnames and parentRefs are wanted" -}}
{{- end -}}
{{- if .Values.httpRoute.enabled -}}
{{- $hosts = concat $hosts .Values.httpRoute.hostnames -}}
{{- end -}}
{{- $hosts = append $hosts (include "sluice.name" .) -}}
{{- $hosts = append $hosts (printf "%s.%s.svc" (include "sluice.name" .) .Release.Namespace) -}}
{{- $_ := set $settings "allowed-hosts" ($hosts | uniq) -}}
{{- if not (or (hasKey $settings "tokens") (hasKey $settings "oidc") (hasKey $settings "tls-client-ca") (hasKey $settings "trust-proxy") (get $settings "allow-anonymous")) -}}
{{- fail "the gateway would not know its callers: give secretFiles.tokens, files.oidc, secretFiles.tls-client-ca or settings.trust-proxy, or, to let everybody in, settings.allow-anonymous: true" -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end }}

{{- define "sluice.scheme" -}}
{{- if .Values.tls.secret }}HTTPS{{ else }}HTTP{{ end -}}
{{- end }}

{{- /* The pods, of a Deployment or a StatefulSet. */ -}}
{{- define "sluice.pod" -}}
metadata:
  annotations:
    # A change of the settings restarts the gateways.
    checksum/settings: {{ include "sluice.settings" . | sha256sum }}
    checksum/files: {{ toYaml .Values.files | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "sluice.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "sluice.name" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    # Files of Secrets belong to root, and this group may read them.
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: sluice
      image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/sluice/sluice.yaml]
      {{- with .Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8080
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "sluice.scheme" . }}}
        periodSeconds: {{ .Values.startup.periodSeconds }}
        failureThreshold: {{ .Values.startup.failureThreshold }}
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "sluice.scheme" . }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "sluice.scheme" . }}}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 1
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: settings, mountPath: /etc/sluice, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if not .Values.redis.url }}
        - {name: data, mountPath: /var/lib/sluice}
        {{- end }}
        {{- range $name, $_file := .Values.secretFiles }}
        - {name: {{ printf "secret-%s" $name }}, mountPath: {{ printf "/etc/sluice-secrets/%s" $name }}, readOnly: true}
        {{- end }}
        {{- if .Values.tls.secret }}
        - {name: tls, mountPath: /etc/sluice-tls, readOnly: true}
        {{- end }}
        {{- if .Values.catalogue.configMap }}
        - {name: catalogue, mountPath: /etc/sluice-catalogue, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "sluice.name" . }}
    - name: tmp
      emptyDir: {}
    {{- range $name, $file := .Values.secretFiles }}
    - name: {{ printf "secret-%s" $name }}
      secret:
        secretName: {{ $file.secret }}
        defaultMode: 0440
        items:
          - {key: {{ $file.key }}, path: {{ $file.key }}}
    {{- end }}
    {{- with .Values.tls.secret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.catalogue.configMap }}
    - name: catalogue
      configMap:
        name: {{ . }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sluice.selector" . | nindent 10 }}
    {{- end }}
{{- end }}
