"""Several questions to one person, within one budget that the person's own device keeps."""

from sourdine.local.questionnaire.device import QuestionnaireDevice
from sourdine.local.questionnaire.joint import JointTable, joint_table
from sourdine.local.questionnaire.payments import DeviceLedger
from sourdine.local.questionnaire.specification import Item, Questionnaire, Way

__all__ = [
    "DeviceLedger",
    "Item",
    "JointTable",
    "Questionnaire",
    "QuestionnaireDevice",
    "Way",
    "joint_table",
]
