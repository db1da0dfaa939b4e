# Completion of gpugate for PowerShell: gpugate completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName gpugate -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        Select-Object -Skip 1 |
        ForEach-Object { if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text } })
    # The word that is being written is the last one, and is missing while it is empty. Windows PowerShell drops empty
    # arguments of programs, so it is written as quotes there.
    if ($wordToComplete -eq '') {
        $words += if ($PSVersionTable.PSVersion -lt [version]'7.3.0') { '""' } else { '' }
    }

    gpugate __complete @words 2>$null | ForEach-Object {
        if ($_ -match '^:(\d+)$') {
            if ($Matches[1] -eq '0') {
                $prefix = if ($wordToComplete -match '^.*=') { $Matches[0] } else { '' }
                [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete.Substring($prefix.Length)) | ForEach-Object {
                    [System.Management.Automation.CompletionResult]::new("$prefix$($_.CompletionText)", $_.ListItemText, $_.ResultType, $_.ToolTip)
                }
            }
        } else {
            $word, $text = $_ -split "`t", 2
            if (-not $text) { $text = $word }
            [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
        }
    }
}
